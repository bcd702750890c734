// Fills the API page. Apart from it, since the page's policy allows no script inside its text.
window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  layout: "BaseLayout",
  syntaxHighlight: { activated: true, theme: "agate" },
  tryItOutEnabled: true,
  validatorUrl: null,
});
