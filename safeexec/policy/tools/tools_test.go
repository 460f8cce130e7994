package tools

import "testing"

func TestLoad(t *testing.T) {
	_, err := Load(Config{})
	if err != nil {
		t.Fatal(err)
	}
}
