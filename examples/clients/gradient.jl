# Logistic regression by a Teletape server, and a null that is explained: julia examples/clients/gradient.jl
# Needs HTTP.jl and JSON3.jl. TELETAPE_URL says where the server is, TELETAPE_API_KEY holds its key if it asks for one.

using HTTP, JSON3, Printf

const SERVER = get(ENV, "TELETAPE_URL", "http://127.0.0.1:8470")
const HEADERS = vcat(
    ["Content-Type" => "application/json"],
    haskey(ENV, "TELETAPE_API_KEY") ? ["Authorization" => "Bearer $(ENV["TELETAPE_API_KEY"])"] : [],
)

"Sends a request and returns the answer's JSON; a refusal is an error with its code and detail."
function call_server(method, path, body = nothing)
    content = body === nothing ? UInt8[] : JSON3.write(body)
    response = HTTP.request(method, SERVER * path, HEADERS, content; status_exception = false)
    answer = isempty(response.body) ? nothing : JSON3.read(response.body)
    response.status < 400 || error("$(answer.code): $(answer.detail)")
    return answer
end

session = "/v1/sessions/julia"
call_server("POST", "/v1/sessions", (id = "julia", replace = true))
call_server("POST", "$session/functions", (
    id = "loss",
    inputs = ["w", "x", "y"],
    steps = [
        (op = "matmul", inputs = ["x", "w"], outputs = ["logits"]),
        (op = "sigmoid_cross_entropy", inputs = ["y", "logits"], outputs = ["losses"]),
        (op = "reduce_mean", inputs = ["losses"], outputs = ["loss"]),
    ],
    outputs = ["loss"],
))

x = [[1.0, -2.0], [1.0, -1.0], [1.0, 1.0], [1.0, 2.0]]
y = [[0.0], [0.0], [1.0], [1.0]]
w = [[0.0], [0.0]]
loss = 0.0
for step in 1:50
    answer = call_server("POST", "$session/functions/loss/value_and_gradient",
        (inputs = (w = w, x = x, y = y), sources = ["w"]))
    gradient = answer.derivatives[1].value.data
    global w = [[w[i][1] - gradient[i][1]] for i in 1:2]
    global loss = answer.values.loss.data
end
@printf("loss after 50 steps: %.3f\n", loss)

call_server("POST", "$session/functions", (id = "steps", inputs = ["x"], outputs = ["y"],
    steps = [(op = "round", inputs = ["x"], outputs = ["y"])]))
why = call_server("POST", "$session/functions/steps/gradient", (inputs = [2.7],)).derivatives[1].why
println("the gradient of round is null: $(why.code) ($(why.op))")

call_server("DELETE", session)
