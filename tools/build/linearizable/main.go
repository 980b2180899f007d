// Reads a history of requests for keys, a line of JSON each, and prints whether it is linearizable: "Ok", "Illegal" with
// the key and the first answer that no order explains, or "Unknown" when the check takes too long. The check is
// porcupine's.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// One request. A write whose outcome is unknown may take effect at any time after its start, or never.
type request struct {
	Client  int    `json:"client"`
	Kind    string `json:"kind"` // get, put, cas, delete
	Key     string `json:"key"`
	Value   string `json:"value"`   // of a put or a cas
	Prev    string `json:"prev"`    // what a cas expects
	Outcome string `json:"outcome"` // ok, compareFailed, notFound, unknown
	Got     string `json:"got"`     // what a get read
	Start   int64  `json:"start"`
	End     int64  `json:"end"`
}

// The value of a key; nil while it does not exist.
type state struct {
	exists bool
	value  string
}

const checkLimit = 2 * time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "linearizable:", err)
		os.Exit(1)
	}
}

func run() error {
	byKey := map[string][]porcupine.Operation{}
	lines := json.NewDecoder(os.Stdin)
	for lines.More() {
		var r request
		if err := lines.Decode(&r); err != nil {
			return err
		}
		operation := porcupine.Operation{ClientId: r.Client, Input: r, Output: r.Outcome, Call: r.Start, Return: r.End}
		byKey[r.Key] = append(byKey[r.Key], operation)
	}
	for key, operations := range byKey {
		sort.Slice(operations, func(a, b int) bool { return operations[a].Return < operations[b].Return })
		switch verdict := checkFirst(operations, len(operations)); verdict {
		case porcupine.Illegal:
			first := 1 + sort.Search(len(operations)-1, func(count int) bool {
				return checkFirst(operations, count+1) == porcupine.Illegal
			})
			request, err := json.Marshal(operations[first-1].Input)
			if err != nil {
				return err
			}
			fmt.Printf("Illegal %s: after %d requests: %s\n", key, first-1, request)
			return nil
		case porcupine.Unknown:
			fmt.Println("Unknown", key)
			return nil
		}
	}
	fmt.Println("Ok")
	return nil
}

// Checks what was known after the first answers: of the other requests, those that had begun may have taken effect.
func checkFirst(operations []porcupine.Operation, answers int) porcupine.CheckResult {
	known := operations[answers-1].Return
	history := []porcupine.Operation{}
	for at, operation := range operations {
		if operation.Call > known {
			continue
		}
		if at >= answers || operation.Output == "unknown" {
			// A client number of its own: porcupine wants each client to do one thing at a time.
			operation.ClientId = 1_000_000 + at
			operation.Output = "unknown"
			operation.Return = known + 1
		}
		history = append(history, operation)
	}
	return porcupine.CheckOperationsTimeout(register, history, checkLimit)
}

var register = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, output any) (bool, any) {
		return step(before.(state), input.(request), output.(string))
	},
	Equal: func(a, b any) bool { return a == b },
}

// What a request does to a key, and whether its outcome is possible.
func step(before state, r request, outcome string) (bool, state) {
	wanted, after := "ok", state{true, r.Value}
	switch r.Kind {
	case "get":
		after = before
		if !before.exists {
			wanted = "notFound"
		}
		if outcome == "ok" && before.value != r.Got {
			return false, before
		}
	case "cas":
		if !before.exists {
			wanted, after = "notFound", before
		} else if before.value != r.Prev {
			wanted, after = "compareFailed", before
		}
	case "delete":
		after = state{}
		if !before.exists {
			wanted = "notFound"
		}
	}
	return outcome == "unknown" || outcome == wanted, after
}
