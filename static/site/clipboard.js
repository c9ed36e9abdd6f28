/** Copies the text of an element. What could not be copied is selected, so that a person can copy it. */
export async function copyFrom(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    return true;
  } catch {
    // Absent outside HTTPS and this machine, and a person may forbid it.
    select(source);
    return document.execCommand("copy");
  }
}

function select(source) {
  if ("value" in source) source.select();
  else getSelection().selectAllChildren(source);
}
