/** Marks in the list which heading is being read; a page of the site without a list gets one. */
export function followHeadings(list) {
  list ??= listed(document.querySelectorAll(".doc:not(.operation) h2[id]"));
  if (!list) return;
  const links = new Map([...list.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const headings = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const look = () => {
    const passed = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 4);
    const current = (passed.at(-1) ?? headings[0])?.id;
    for (const [id, link] of links) link.toggleAttribute("aria-current", id === current);
  };
  addEventListener("scroll", () => requestAnimationFrame(look), { passive: true });
  look();
}

function listed(headings) {
  if (headings.length < 2) return null;
  const list = document.createElement("nav");
  list.className = "on-page";
  list.setAttribute("aria-label", "On this page");
  list.innerHTML = "<p>On this page</p><ul></ul>";
  for (const heading of headings) {
    const link = document.createElement("a");
    link.href = `#${heading.id}`;
    link.textContent = heading.firstChild.textContent;
    const item = document.createElement("li");
    item.append(link);
    list.lastChild.append(item);
  }
  document.querySelector("article.doc").after(list);
  return list;
}
