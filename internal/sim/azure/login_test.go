package azuresim_test

import (
	"encoding/json"
	"strings"
	"testing"

	azuresim "ghostbot/internal/sim/azure"
	"ghostbot/internal/sim/azure/lab"
)

// TestLogin signs the real az in, as an operator does, and asks for something.
func TestLogin(t *testing.T) {
	tools := lab.Need(t)
	s := lab.Start(t, azuresim.Options{})
	dir := t.TempDir()
	env, err := s.Surroundings(dir+"/config", tools.Warm)
	if err != nil {
		t.Fatal(err)
	}
	seed := s.Cloud.Seed()
	az := func(args ...string) lab.Call {
		c, err := lab.Run(t.Context(), tools.Az, dir, env, args...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	login := []string{"login", "--service-principal", "-u", seed.Client, "--tenant", seed.Tenant, "-p"}
	if c := az(append(login, "wrong")...); c.Exit == 0 || !strings.Contains(c.Stderr, "AADSTS7000215") {
		t.Errorf("with a wrong secret: %+v", c)
	}
	env, err = s.Surroundings(dir+"/again", tools.Warm) // az remembers failures
	if err != nil {
		t.Fatal(err)
	}
	c := az(append(login, s.SignIn.Secret)...)
	var list []struct{ ID, Name string }
	if json.Unmarshal([]byte(c.Stdout), &list) != nil || c.Exit != 0 || len(list) != 2 || list[0].ID != subscription {
		t.Fatalf("%+v", c)
	}
	if c := az("network", "watcher", "list", "--query", "[].location", "-o", "tsv"); c.Stdout != "westeurope\nnortheurope\n" {
		t.Errorf("%+v", c)
	}
}
