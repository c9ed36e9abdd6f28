// Marks publishers whose results hold. The service checks them only once their row is seen.
const links = document.querySelectorAll("[data-checked]");
const tick = document.querySelector("[data-tick]");

async function check(link) {
  const answer = await fetch(link.dataset.checked);
  if (!answer.ok) return;
  const { checked, verified } = await answer.json();
  const all = checked > 0 && verified === checked;
  const counts = `Results that hold: ${verified} of ${checked}`;
  const unseen = Object.assign(document.createElement("span"), { className: "unseen", textContent: `. ${counts}` });
  link.classList.add("mark", all ? "verified" : "altered");
  link.replaceChildren(...(all ? [tick.content.cloneNode(true), "Verified"] : ["Not verified"]), unseen);
  link.title = counts;
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    // Where it cannot be checked, the link stays without a mark.
    check(target).catch(() => {});
  }
});
for (const link of links) seen.observe(link);
