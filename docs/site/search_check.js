// Asks the search of the built site every question of queries.txt and says on which place the right page comes:
// node docs/site/search_check.js build/docs/html docs/site/queries.txt. Fails where fewer than nine in ten are among the
// first three.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [html, queries] = process.argv.slice(2);
const nothing = () => ({ addEventListener() {}, appendChild() {}, querySelector: nothing, style: {}, dataset: {}, classList: { add() {} } });
const sandbox = {
  SPHINX_HIGHLIGHT_ENABLED: false, console, URL, URLSearchParams, setTimeout,
  DOCUMENTATION_OPTIONS: { BUILDER: "html", FILE_SUFFIX: ".html", LINK_SUFFIX: ".html", SHOW_SEARCH_SUMMARY: false },
  document: { querySelector: () => null, getElementById: () => null, addEventListener() {}, createElement: nothing, readyState: "loading",
              documentElement: { dataset: { content_root: "./" } } },
  _ready: () => {}, _: (text) => text, _n: (one, many, n) => (n === 1 ? one : many),
  localStorage: { setItem() {}, getItem: () => null, removeItem() {} },
  splitQuery: undefined,
};
sandbox.window = sandbox;
vm.createContext(sandbox);
for (const file of ["_static/language_data.js", "_static/searchtools.js"])
  vm.runInContext(fs.readFileSync(path.join(html, file), "utf8"), sandbox, { filename: file });
vm.runInContext(fs.readFileSync(path.join(html, "searchindex.js"), "utf8"), sandbox);

vm.runInContext("searchAnyWord()", sandbox);

const ask = (query) => {
  sandbox.__query = query;
  sandbox.location = { search: "?q=" + encodeURIComponent(query) };
  const found = vm.runInContext("Search._performSearch(...Search._parseQuery(__query))", sandbox);
  const pages = [];
  for (const result of [...found].reverse()) if (!pages.includes(result[0])) pages.push(result[0]);
  return pages;
};

let good = 0, asked = 0;
for (const line of fs.readFileSync(queries, "utf8").split("\n")) {
  if (!line || line.startsWith("#")) continue;
  const [query, wanted] = line.split("->").map((part) => part.trim());
  const pages = ask(query);
  const place = Math.min(...wanted.split("|").map((page) => (pages.indexOf(page.trim()) + 1 || Infinity)));
  asked++;
  if (place <= 3) good++;
  else console.log(`"${query}": ${wanted} is ${place === Infinity ? "not found" : "number " + place}; first: ${pages.slice(0, 3).join(", ")}`);
}
console.log(`${good} of ${asked} questions find their page among the first three`);
process.exit(good * 10 >= asked * 9 ? 0 : 1);
