/** Asks for a fragment as the person whom this page was made for: refused once somebody else signed in. */
export const ask = (address) =>
  fetch(address, { headers: { "HX-Request": "true", "X-Dexweb-Person": document.body.dataset.person ?? "" } });
