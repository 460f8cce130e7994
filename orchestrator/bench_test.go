package orchestrator

import (
	"testing"
)

// A whole capture and its clean-up, without what az and people take: 9 commands
// and 12 transitions.
func BenchmarkCapture(b *testing.B) {
	for b.Loop() {
		w := azure()
		o := w.orchestrator()
		got, err := o.Start(b.Context(), request())
		if err == nil {
			got, err = o.Clean(b.Context(), TaskRequest{TaskID: got.TaskID, Origin: Origin{Turn: 9}})
		}
		if err != nil || got.State != Done {
			b.Fatal(got, err)
		}
	}
}
