/** Marks in the list which heading is being read. */
export function followHeadings(list) {
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
