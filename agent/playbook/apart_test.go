package playbook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// queueLook is the observation of one look at the queue of 127.0.0.1:8080.
func queueLook(at time.Time, waiting string) agent.Observation {
	zero := 0
	return agent.Observation{Turn: 1, Time: at, AuditID: "ghost_20260314_104512_001",
		Move: agent.RunShell{Command: "ss -ltn sport = :8080", Reasoning: "x"},
		Shell: &safeexec.Result{AuditID: "ghost_20260314_104512_001", Status: "completed", Command: "ss -ltn sport = :8080", ExitCode: &zero,
			Output: "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN " + waiting + "      128    127.0.0.1:8080      0.0.0.0:*\n"}}
}

// Two looks at a queue in which connections wait are a second apart; nothing else
// waits.
func TestLooksAtAQueueAreApart(t *testing.T) {
	now := time.Date(2026, 3, 14, 10, 45, 0, 0, time.UTC)
	again := agent.Turn{Moves: []agent.Move{agent.RunShell{Command: "ss -ltn sport = :8080"}}}
	other := agent.Turn{Moves: []agent.Move{agent.RunShell{Command: "nc -z -v -w 4 127.0.0.1 8080"}}}
	tests := []struct {
		name    string
		waiting string
		ago     time.Duration
		turn    agent.Turn
		want    time.Duration
	}{
		{"at once", "1", 0, again, time.Second},
		{"soon", "3", 300 * time.Millisecond, again, 700 * time.Millisecond},
		{"later", "3", 5 * time.Second, again, 0},
		{"a clock that goes back", "3", -time.Hour, again, time.Second},
		{"an empty queue", "0", 0, again, 0},
		{"another command", "1", 0, other, 0},
	}
	for _, tt := range tests {
		v := agent.View{Now: now, Case: agent.Case{Symptom: "127.0.0.1:8080 hangs", SessionID: "ghost_20260314_104512"}, Observations: []agent.Observation{queueLook(now.Add(-tt.ago), tt.waiting)}}
		if got := newBoard(v, Options{}).apart(tt.turn); got != tt.want {
			t.Errorf("%s: apart = %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestRestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if err := rest(ctx, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("rest = %v", err)
		}
		start := time.Now()
		if err := rest(context.Background(), time.Second); err != nil || time.Since(start) != time.Second {
			t.Errorf("rest = %v after %s", err, time.Since(start))
		}
	})
}
