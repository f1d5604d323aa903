"""The machine and date that accompany every figure."""
import datetime
import platform


def machine():
    """Returns the processor's name, with numbers that distinguish models of one name where the system gives them."""
    try:
        with open("/proc/cpuinfo") as file:
            facts = dict(tuple(part.strip() for part in line.split(":", 1)) for line in file if ":" in line)
    except OSError:
        facts = {}
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = ", ".join(f"{word} {facts[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if key in facts)
    return f"{name} ({numbers})" if numbers else name


def today():
    day = datetime.date.today()
    return f"{day.day} {day:%B %Y}"
