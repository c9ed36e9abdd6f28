// Shows which marks the results of each publisher have. The service checks them only once their row is seen.
const links = document.querySelectorAll("[data-checked]");
const tick = document.querySelector("[data-tick]");

async function check(link) {
  const answer = await fetch(link.dataset.checked);
  if (!answer.ok) return;
  const { marks } = await answer.json();
  if (!marks.length) return;
  link.classList.add("marks");
  link.replaceChildren(...marks.map(badge));
}

function badge([mark, label, count]) {
  const shown = Object.assign(document.createElement("span"), { className: `mark ${mark}` });
  if (mark === "verified_at_venue") shown.append(tick.content.cloneNode(true));
  shown.append(`${label}: ${count.toLocaleString("en-GB")}`);
  return shown;
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
