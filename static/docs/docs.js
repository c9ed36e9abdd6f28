// Every page of the documentation: its search, its samples, and where one is on it.
import { followHeadings } from "./headings.js";
import { addCopyButtons, startTabs } from "./samples.js";
import { startSearch } from "./search.js";

startTabs();
addCopyButtons();
startSearch(document.getElementById("find"));
followHeadings(document.querySelector(".on-page"));

// The entry of this page, where the contents are longer than the window.
const contents = document.getElementById("docs-contents");
const here = contents.querySelector("[aria-current]");
const show = () => here?.scrollIntoView({ block: "nearest" });
contents.addEventListener("toggle", show);
if (here && here.getBoundingClientRect().bottom > contents.getBoundingClientRect().bottom) {
  contents.scrollTop = here.offsetTop - contents.clientHeight / 2;
}
