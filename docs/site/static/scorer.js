// Pages that explain come before the reference, and both before pages about the inside.
const explains = /^(README|docs\/(?!architecture|walks|glossary|operations|onnx-operations))/;
// By page: phrases under which it is found first (synonyms.txt).
const ALSO = {};
const asked = () => (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\s+/);
const isAbout = (page) => {
  const words = asked();
  return (ALSO[page] || []).some((phrase) => phrase.split(" ").every((word) => words.includes(word)));
};
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    if (isAbout(page)) return score + 100;
    if (page.startsWith("reference/")) return score * 0.5;
    return explains.test(page) ? score * 2 : score * 0.4;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
