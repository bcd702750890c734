# Logistic regression by a Teletape server, and a null that is explained: Rscript examples/clients/gradient.R
# Needs httr2. TELETAPE_URL says where the server is, TELETAPE_API_KEY holds its key if it asks for one.

library(httr2)

server <- Sys.getenv("TELETAPE_URL", "http://127.0.0.1:8470")
key <- Sys.getenv("TELETAPE_API_KEY")

# Sends a request and returns the answer's JSON; a refusal stops with its code and detail.
call_server <- function(method, path, body = NULL) {
  req <- req_method(request(paste0(server, path)), method)
  if (nzchar(key)) req <- req_auth_bearer_token(req, key)
  if (!is.null(body)) req <- req_body_json(req, body, digits = NA)
  req <- req_error(req, body = function(resp) {
    problem <- resp_body_json(resp, check_type = FALSE)
    paste0(problem$code, ": ", problem$detail)
  })
  resp <- req_perform(req)
  if (resp_status(resp) == 204) NULL else resp_body_json(resp)
}

# A matrix as JSON writes it: a list of its rows.
rows <- function(matrix) lapply(seq_len(nrow(matrix)), function(i) as.list(matrix[i, ]))

session <- "/v1/sessions/r"
invisible(call_server("POST", "/v1/sessions", list(id = "r", replace = TRUE)))
invisible(call_server("POST", paste0(session, "/functions"), list(
  id = "loss",
  inputs = list("w", "x", "y"),
  steps = list(
    list(op = "matmul", inputs = list("x", "w"), outputs = list("logits")),
    list(op = "sigmoid_cross_entropy", inputs = list("y", "logits"), outputs = list("losses")),
    list(op = "reduce_mean", inputs = list("losses"), outputs = list("loss"))
  ),
  outputs = list("loss")
)))

x <- cbind(1, c(-2, -1, 1, 2))
y <- matrix(c(0, 0, 1, 1))
w <- matrix(c(0, 0))
for (step in 1:50) {
  answer <- call_server("POST", paste0(session, "/functions/loss/value_and_gradient"), list(
    inputs = list(w = rows(w), x = rows(x), y = rows(y)), sources = list("w")
  ))
  w <- w - matrix(unlist(answer$derivatives[[1]]$value$data))
}
cat(sprintf("loss after 50 steps: %.3f\n", answer$values$loss$data))

invisible(call_server("POST", paste0(session, "/functions"), list(
  id = "steps", inputs = list("x"), outputs = list("y"),
  steps = list(list(op = "round", inputs = list("x"), outputs = list("y")))
)))
why <- call_server("POST", paste0(session, "/functions/steps/gradient"), list(inputs = list(2.7)))$derivatives[[1]]$why
cat(sprintf("the gradient of round is null: %s (%s)\n", why$code, why$op))

invisible(call_server("DELETE", session))
