//go:build faultinject

package triage

import (
	"os"
	"strconv"
)

// stopAfter ends an apply after so many checkpoints, for tests of resuming.
func stopAfter() int {
	n, _ := strconv.Atoi(os.Getenv("GHOSTBOT_TEST_STOP_AFTER"))
	return n
}
