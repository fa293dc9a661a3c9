/* Order of the search: how-to guides, tutorials, and names of the Python interface after the pages. */
var FOLDERS = { "how-to": 12, tutorials: 6, gallery: -4 };
var Scorer = {
  score: ([docname, , , , score, , kind]) => score + (FOLDERS[docname.split("/")[0]] || 0) - (kind === "object" ? 12 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
