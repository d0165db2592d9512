// Pages on how the library is built come after the pages on its use; the numbers are the defaults of Sphinx.
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    /^(numerics|decisions|reliability|benchmarks|contributing|how_a_batch_runs|changelog)$/.test(page)
      ? score - 12
      : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
