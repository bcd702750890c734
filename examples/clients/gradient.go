// Logistic regression by a Teletape server, and a null that is explained: go run examples/clients/gradient.go
// TELETAPE_URL says where the server is, TELETAPE_API_KEY holds its key if it asks for one.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

// object is any JSON object.
type object = map[string]any

// tensor is a tensor of an answer: float32 unless dtype says otherwise.
type tensor struct {
	Dtype string          `json:"dtype"`
	Shape []int           `json:"shape"`
	Data  json.RawMessage `json:"data"`
}

// derivative is a derivative of an answer; without a value, Why holds the reason.
type derivative struct {
	Source string  `json:"source"`
	Value  *tensor `json:"value"`
	Why    *struct {
		Code, Message, Op, Advice string
	} `json:"why"`
}

var server = address()

func address() string {
	if url := os.Getenv("TELETAPE_URL"); url != "" {
		return strings.TrimRight(url, "/")
	}
	return "http://127.0.0.1:8470"
}

// call sends a request and reads the answer's JSON into answer; a refusal ends the program with its detail.
func call(method, path string, body, answer any) {
	content, err := json.Marshal(body)
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest(method, server+path, bytes.NewReader(content))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("TELETAPE_API_KEY"); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		var problem struct{ Code, Detail string }
		_ = json.NewDecoder(response.Body).Decode(&problem)
		log.Fatalf("%s: %s", problem.Code, problem.Detail)
	}
	if answer != nil {
		if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
			log.Fatal(err)
		}
	}
}

func main() {
	call("POST", "/v1/sessions", object{"id": "go", "replace": true}, nil)
	session := "/v1/sessions/go"
	call("POST", session+"/functions", object{
		"id":     "loss",
		"inputs": []string{"w", "x", "y"},
		"steps": []object{
			{"op": "matmul", "inputs": []string{"x", "w"}, "outputs": []string{"logits"}},
			{"op": "sigmoid_cross_entropy", "inputs": []string{"y", "logits"}, "outputs": []string{"losses"}},
			{"op": "reduce_mean", "inputs": []string{"losses"}, "outputs": []string{"loss"}},
		},
		"outputs": []string{"loss"},
	}, nil)

	x := [][]float32{{1, -2}, {1, -1}, {1, 1}, {1, 2}}
	y := [][]float32{{0}, {0}, {1}, {1}}
	w := [][]float32{{0}, {0}}
	var loss float32
	for step := 0; step < 50; step++ {
		var answer struct {
			Values      map[string]tensor
			Derivatives []derivative
		}
		call("POST", session+"/functions/loss/value_and_gradient",
			object{"inputs": object{"w": w, "x": x, "y": y}, "sources": []string{"w"}}, &answer)
		var gradient [][]float32
		if err := json.Unmarshal(answer.Derivatives[0].Value.Data, &gradient); err != nil {
			log.Fatal(err)
		}
		_ = json.Unmarshal(answer.Values["loss"].Data, &loss)
		for i := range w {
			w[i][0] -= gradient[i][0]
		}
	}
	fmt.Printf("loss after 50 steps: %.3f\n", loss)

	var answer struct{ Derivatives []derivative }
	call("POST", session+"/functions", object{"id": "steps", "inputs": []string{"x"}, "outputs": []string{"y"},
		"steps": []object{{"op": "round", "inputs": []string{"x"}, "outputs": []string{"y"}}}}, nil)
	call("POST", session+"/functions/steps/gradient", object{"inputs": []float32{2.7}}, &answer)
	why := answer.Derivatives[0].Why
	fmt.Printf("the gradient of round is null: %s (%s)\n", why.Code, why.Op)

	call("DELETE", session, nil, nil)
}
