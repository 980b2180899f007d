// Prints what kstatus, by which Flux and Helm wait, makes of each object on its input: a line of JSON for each.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run() error {
	objects := json.NewDecoder(os.Stdin)
	for objects.More() {
		var object unstructured.Unstructured
		if err := objects.Decode(&object); err != nil {
			return err
		}
		result, err := status.Compute(&object)
		if err != nil {
			return err
		}
		line, err := json.Marshal(map[string]string{"status": result.Status.String(), "message": result.Message})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
