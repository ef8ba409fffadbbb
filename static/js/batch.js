// The review of several approvals: how many are ticked, what the second step names, and what was sent is selected no more.
const KEPT = "dexweb-batch";

const form = document.querySelector("[data-batch]");
if (form) start(form);
const results = document.querySelector("[data-batch-results]");
if (results) forget([...results.querySelectorAll("[data-id]")].map((line) => line.dataset.id));

function start(form) {
  const boxes = [...form.querySelectorAll("[data-batch-in]")];
  const show = () => {
    const count = boxes.filter((box) => box.checked).length;
    for (const box of boxes) {
      box.closest("[data-batch-item]").classList.toggle("out", !box.checked);
      const sure = form.querySelector(`[data-sure="${CSS.escape(box.value.split(":")[0])}"]`);
      if (sure) sure.hidden = !box.checked;
    }
    for (const words of form.querySelectorAll("[data-batch-count]")) words.textContent = count;
    for (const button of form.querySelectorAll("button[value]")) button.disabled = !count;
  };
  form.addEventListener("change", show);
  addEventListener("pageshow", show);
  show();
}

function forget(ids) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    sessionStorage.setItem(KEPT, JSON.stringify(kept.filter((id) => !ids.includes(id))));
  } catch {
    // Nothing is kept, so nothing is to be forgotten.
  }
}
