const PART = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\],]|[^\s{}[\],:"]+/g;

/** A JSON text in lines and colours, each number exactly as it was sent. */
export function indented(text) {
  const out = [];
  let depth = 0;
  let before = "";
  const line = () => out.push(`\n${"  ".repeat(depth)}`);
  for (const [part, isName] of text.matchAll(PART)) {
    const closes = part === "}" || part === "]";
    if (closes) depth--;
    if (closes && !"{[".includes(before)) line();
    else if (!closes && (before === "{" || before === "[")) line();
    if (isName !== undefined) out.push(coloured(part.slice(0, -isName.length), "f"), ": ");
    else if (part.startsWith('"')) out.push(coloured(part, "s"));
    else if (/^[-\d]/.test(part)) out.push(coloured(part, "n"));
    else if (/^[a-z]/.test(part)) out.push(coloured(part, "k"));
    else out.push(part);
    if (part === "{" || part === "[") depth++;
    if (part === ",") line();
    before = isName === undefined ? part : "";
  }
  return out;
}

function coloured(text, kind) {
  const span = document.createElement("span");
  span.className = `h-${kind}`;
  span.textContent = text;
  return span;
}
