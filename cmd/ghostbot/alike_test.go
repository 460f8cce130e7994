package main

import "testing"

func TestAboutTheSame(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"checkout gets 502 from 127.0.0.1:18080 since 10:40", "http://127.0.0.1:18080/ is slow", true},
		{"checkout gets 502 from 127.0.0.1:18080", "checkout gets 502 from 127.0.0.1:18081", false},
		{"is 192.0.2.7 down?", "192.0.2.7:443 hangs", true},
		{"shop.example.com fails", "SHOP.example.com: certificate error", true},
		{"shop.example.com fails", "pay.example.com fails", false},
		{"everything is slow", "Everything is slow!", true},
		{"everything is slow", "everything is down", false},
		{"", "", false},
		{"https://[2001:db8::1]:8443/ refuses", "[2001:db8::1]:8443 times out", true},
	}
	for _, tt := range tests {
		if got := aboutTheSame(tt.a, tt.b); got != tt.want {
			t.Errorf("aboutTheSame(%q, %q) = %v", tt.a, tt.b, got)
		}
		if got := aboutTheSame(tt.b, tt.a); got != tt.want {
			t.Errorf("aboutTheSame(%q, %q) = %v", tt.b, tt.a, got)
		}
	}
}
