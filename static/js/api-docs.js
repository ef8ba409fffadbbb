/** Shows the API's description; a tried-out request carries the session's CSRF token. */
const place = document.getElementById("api-docs");

// The reader has a dark face of its own, under this name.
const { documentElement: page } = document;
const dress = () => page.classList.toggle("dark-mode", page.dataset.theme === "dark");
page.addEventListener("themechange", dress);
dress();

window.SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
  requestInterceptor: (request) => {
    request.headers["X-CSRFToken"] = place.dataset.csrf;
    return request;
  },
});
