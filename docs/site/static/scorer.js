// Pages that explain come before the reference, and both before pages about the inside.
const explains = /^(README|docs\/(?!architecture|walks|glossary|operations|onnx-operations))/;
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
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
