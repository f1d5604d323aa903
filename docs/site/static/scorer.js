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
// Where no page has all the words, those that have most of them are found.
function searchAnyWord() {
  const all = Search._performSearch;
  Search._performSearch = (query, terms, ...rest) => {
    const found = all(query, terms, ...rest);
    if (found.length || terms.size < 2) return found;
    const best = new Map();
    for (const term of terms)
      for (const result of all(query, new Set([term]), ...rest)) {
        const key = result[0] + (result[2] || "");
        const before = best.get(key);
        best.set(key, before ? [...before.slice(0, 4), before[4] + result[4] + 50, ...before.slice(5)] : [...result]);
      }
    return [...best.values()].sort((a, b) => a[4] - b[4]);
  };
}
if (typeof document !== "undefined") document.addEventListener("DOMContentLoaded", searchAnyWord);
