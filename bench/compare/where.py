"""On which machine, and when: what stands with every figure."""
import datetime
import platform


def machine():
    """The processor, with the numbers that tell one make of the same name from another where the system gives them."""
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
