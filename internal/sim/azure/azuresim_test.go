package azuresim_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	azuresim "ghostbot/internal/sim/azure"
	"ghostbot/internal/sim/azure/lab"
)

func TestScratch(t *testing.T) {
	tools := lab.Need(t)
	st, err := lab.StartStorage(tools)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Stop()
	s := lab.Start(t, st.Options())
	dir := t.TempDir()
	env, err := s.Env(dir+"/cfg", tools.Warm)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(os.Getenv("AZ")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case line == "requests":
			for _, r := range s.Requests() {
				fmt.Println("   ", r.Status, r.Method, r.Host, r.Path, r.Query, r.Command)
			}
			continue
		}
		c, err := lab.Run(t.Context(), tools.Az, dir, env, strings.Split(line, "|")...)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("== %s\nrc %d\n%s%s", line, c.Exit, c.Stdout, c.Stderr)
	}
	_ = azuresim.Options{}
}
