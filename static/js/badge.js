// The count beside Approvals, kept true where a page hears of it.
export function showPending(count) {
  const badge = document.getElementById("pending-approvals");
  if (!badge || typeof count !== "number") return;
  badge.firstChild.textContent = count;
  badge.hidden = count === 0;
}
