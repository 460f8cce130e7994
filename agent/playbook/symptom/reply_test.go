package symptom_test

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// heard is what a text says about endpoints, in one line: the targets, then what
// is not meant (-), in order (=) or to be left alone (x), then the flags.
func heard(s symptom.Symptom) string {
	var out []string
	for _, x := range []struct {
		sign string
		list []symptom.Endpoint
	}{{"", s.Targets}, {"-", s.Not}, {"=", s.Fine}, {"x", s.Off}} {
		for _, e := range x.list {
			out = append(out, x.sign+strings.TrimPrefix(e.String(), "127.0.0.1")+e.Path)
		}
	}
	for _, x := range []struct {
		is   bool
		word string
	}{{s.Correction && !s.Bare, "CORRECTS"}, {s.Correction && s.Bare, "CORRECTS?"}, {s.Addition, "ADDS"}} {
		if x.is {
			out = append(out, x.word)
		}
	}
	return strings.Join(out, " ")
}

// TestAdditions: what is no explicit correction of the target only adds.
func TestAdditions(t *testing.T) {
	for text, want := range map[string]string{
		"not now, look at 127.0.0.1:18090 as well":                           ":18090 ADDS",
		"not now, look at 127.0.0.1:18090":                                   ":18090",
		"no that's prod, look at 127.0.0.1:18090":                            ":18090",
		"no, it's still broken, 127.0.0.1:18090":                             ":18090",
		"sorry, forgot to mention 127.0.0.1:18090":                           ":18090",
		"the real problem is 127.0.0.1:18090":                                ":18090",
		"the wrong port was opened in the firewall on 127.0.0.1:18090":       ":18090",
		"wrong service answers on 127.0.0.1:18090":                           ":18090",
		"127.0.0.1:18090 is the old host":                                    ":18090",
		"it is not 127.0.0.1:18080 alone, 127.0.0.1:18090":                   ":18080 :18090",
		"we do not use 127.0.0.1:18080 any more":                             ":18080",
		"127.0.0.1:18090 sorry for the noise":                                ":18090",
		"not now. 127.0.0.1:18090?":                                          ":18090",
		"not yet, check 127.0.0.1:18090 first":                               ":18090",
		"no capture please, look at 127.0.0.1:18090":                         ":18090",
		"no need for that. can you look at 127.0.0.1:18090":                  ":18090",
		"no, look at 127.0.0.1:18090":                                        ":18090",
		"no, check port 18090 first":                                         ":18090",
		"nope, try 127.0.0.1:18090 too":                                      ":18090 ADDS",
		"no, 127.0.0.1:18090 too":                                            ":18090 ADDS",
		"no, it is 127.0.0.1:18090 as well":                                  ":18090 ADDS",
		"no worries, also 127.0.0.1:18090":                                   ":18090 ADDS",
		"no idea, maybe 127.0.0.1:18090":                                     ":18090",
		"not sure, could be 127.0.0.1:18090":                                 ":18090",
		"not only that one, 127.0.0.1:18090 is slow":                         ":18090 ADDS",
		"sorry for the delay, 127.0.0.1:18090 is red in grafana":             ":18090",
		"sorry, 127.0.0.1:18090 is down too":                                 ":18090 ADDS",
		"actually can you have a look at 127.0.0.1:18090":                    ":18090",
		"in addition 127.0.0.1:18090 gives 500":                              ":18090 ADDS",
		"and 127.0.0.1:18090":                                                ":18090 ADDS",
		"and 127.0.0.1:18090 and 127.0.0.1:18091":                            ":18090 :18091 ADDS",
		"+ 127.0.0.1:18090":                                                  ":18090 ADDS",
		"it is 127.0.0.1:18090":                                              ":18090",
		"the upstream is 127.0.0.1:18090":                                    ":18090",
		"instead of capturing look at 127.0.0.1:18090":                       ":18090",
		"it should be fine. 127.0.0.1:18090 is not":                          ":18090",
		"that's not the point, see 127.0.0.1:18090":                          ":18090",
		"the request to 127.0.0.1:18090 goes to the wrong server":            ":18090",
		"api resolves to the wrong address 127.0.0.1:18090":                  ":18090",
		"wrong host? or is it 127.0.0.1:18090?":                              ":18090",
		"why not 127.0.0.1:18090?":                                           ":18090",
		"it works on 127.0.0.1:18080, not on 127.0.0.1:18090":                ":18090 =:18080",
		"127.0.0.1:18080 works, 127.0.0.1:18090 does not":                    ":18090 =:18080",
		"works on 127.0.0.1:18080 but not 127.0.0.1:18090":                   ":18090 =:18080",
		"auch 127.0.0.1:18090 ist kaputt":                                    ":18090 ADDS",
		"nicht jetzt, schau dir auch 127.0.0.1:18090 an":                     ":18090 ADDS",
		"nicht jetzt, erst 127.0.0.1:18090":                                  ":18090",
		"nein, bitte auch Port 18090":                                        ":18090 ADDS",
		"pas maintenant, regarde 127.0.0.1:18090":                            ":18090",
		"no ahora, mira 127.0.0.1:18090 también":                             ":18090 ADDS",
		"we cannot ignore 127.0.0.1:18090":                                   ":18090",
		"clients that ignore 127.0.0.1:18090 work":                           ":18090",
		"connections drop at 127.0.0.1:18090":                                ":18090",
		"should we also look at 127.0.0.1:18090, not just 127.0.0.1:18080":   ":18090 :18080 ADDS",
		"the cert of 127.0.0.1:18443 has the wrong name":                     ":18443",
		"can't reach 127.0.0.1:18090 from 127.0.0.1:18080 neither":           ":18090 :18080",
		"not the database, 127.0.0.1:18090":                                  ":18090",
		"no way! 127.0.0.1:18090 is dead":                                    ":18090",
		"no: the tcpdump would be on prod. 127.0.0.1:18090 is what you want": ":18090",
	} {
		if got := heard(symptom.Parse(text)); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestCorrections: the ways in which people say that another target was meant.
func TestCorrections(t *testing.T) {
	for text, want := range map[string]string{
		"no, it is 127.0.0.1:18090":                                ":18090 CORRECTS",
		"no it's 127.0.0.1:18090":                                  ":18090 CORRECTS",
		"No, it's on port 18090!":                                  ":18090 CORRECTS",
		"no sorry, it's port 18090":                                ":18090 CORRECTS",
		"127.0.0.1:18090, sorry":                                   ":18090 CORRECTS",
		"port 18090 my bad":                                        ":18090 CORRECTS",
		"s/18080/18090/":                                           ":18090 -:18080 CORRECTS",
		"nein nicht 18080, sondern 18090":                          ":18090 -:18080 CORRECTS",
		"forget 127.0.0.1:18080, look at 127.0.0.1:18090 instead":  ":18090 x:18080 CORRECTS",
		"I meant: http://127.0.0.1:18090/":                         ":18090 CORRECTS",
		"no, port 18090":                                           ":18090 CORRECTS?",
		"no, 18090":                                                ":18090 CORRECTS?",
		"nein, 127.0.0.1:18090":                                    ":18090 CORRECTS?",
		"nein, es ist Port 18090":                                  ":18090 CORRECTS",
		"non, port 18090":                                          ":18090 CORRECTS?",
		"non, c'est 127.0.0.1:18090":                               ":18090 CORRECTS",
		"no, es 127.0.0.1:18090":                                   ":18090 CORRECTS",
		"sorry, 127.0.0.1:18090":                                   ":18090 CORRECTS?",
		"oops, I meant 127.0.0.1:18090":                            ":18090 CORRECTS",
		"i meant the one on 127.0.0.1:18090":                       ":18090 CORRECTS",
		"ah sorry, meant to write 127.0.0.1:18090":                 ":18090 CORRECTS",
		"127.0.0.1:18090 is what I meant":                          ":18090 CORRECTS",
		"ich meinte Port 18090":                                    ":18090 CORRECTS",
		"gemeint war 127.0.0.1:18090":                              ":18090 CORRECTS",
		"je voulais dire 127.0.0.1:18090":                          ":18090 CORRECTS",
		"wrong port! it's 18090":                                   ":18090 CORRECTS",
		"wrong host, 127.0.0.2:18080":                              "127.0.0.2:18080 CORRECTS",
		"you are looking at the wrong box. 127.0.0.1:18090 please": ":18090 CORRECTS",
		"falscher Port: 18090":                                     ":18090 CORRECTS",
		"typo, 127.0.0.1:18090":                                    ":18090 CORRECTS",
		"Correction: http://127.0.0.1:18090/cart":                  ":18090/cart CORRECTS",
		"edit: 127.0.0.1:18090":                                    ":18090 CORRECTS",
		"*127.0.0.1:18090":                                         ":18090 CORRECTS",
		"127.0.0.1:18090 instead":                                  ":18090 CORRECTS",
		"look at 127.0.0.1:18090 instead please":                   ":18090 CORRECTS",
		"stattdessen bitte 127.0.0.1:18090":                        ":18090",
		"actually it's 127.0.0.1:18090":                            ":18090 CORRECTS",
		"it's actually on port 18090":                              ":18090 CORRECTS",
		"the right port is 18090":                                  ":18090 CORRECTS",
		"correct address: 127.0.0.1:18090":                         ":18090 CORRECTS",
		"that should be 127.0.0.1:18090":                           ":18090 CORRECTS",
		"scratch that, 127.0.0.1:18090":                            ":18090 CORRECTS",
		"forget what I said, it's 127.0.0.1:18090":                 ":18090 CORRECTS",
		"change the port to 18090":                                 ":18090 CORRECTS",
		"not 127.0.0.1:18080, it is 127.0.0.1:18090":               ":18090 -:18080 CORRECTS",
		"not 127.0.0.1:18080 but 127.0.0.1:18090":                  ":18090 -:18080 CORRECTS",
		"127.0.0.1:18090, not 127.0.0.1:18080":                     ":18090 -:18080 CORRECTS",
		"it isn't 127.0.0.1:18080, I meant 127.0.0.1:18090":        ":18090 -:18080 CORRECTS",
		"it's not on 127.0.0.1:18080":                              "-:18080 CORRECTS",
		"not port 18080 but port 18090":                            ":18090 -:18080 CORRECTS",
		"not 18080, 18090":                                         ":18090 -:18080 CORRECTS",
		"127.0.0.1:18090 instead of 127.0.0.1:18080":               ":18090 -:18080 CORRECTS",
		"take 127.0.0.1:18090 rather than 127.0.0.1:18080":         ":18090 -:18080 CORRECTS",
		"nicht 127.0.0.1:18080 sondern 127.0.0.1:18090":            ":18090 -:18080 CORRECTS",
		"pas 127.0.0.1:18080 mais 127.0.0.1:18090":                 ":18090 -:18080 CORRECTS",
		"no 127.0.0.1:18080 sino 127.0.0.1:18090":                  ":18090 -:18080 CORRECTS",
		"127.0.0.1:18090 statt 127.0.0.1:18080":                    ":18090 -:18080 CORRECTS",
		"127.0.0.1:18080 is the wrong one, 127.0.0.1:18090":        ":18090 -:18080 CORRECTS",
	} {
		if got := heard(symptom.Parse(text)); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestInOrder: what people say is in order is no suspect, as long as there is
// another one and nobody doubts it.
func TestInOrder(t *testing.T) {
	for text, want := range map[string]string{
		"checkout fails on 127.0.0.1:18080, I checked 127.0.0.1:18081, that one is fine":         ":18080 =:18081",
		"I checked 127.0.0.1:18081, that one is fine. 127.0.0.1:18080 gives 502":                 ":18080 =:18081",
		"127.0.0.1:18080 gives 502, 127.0.0.1:18081 is fine":                                     ":18080 =:18081",
		"127.0.0.1:18080 gives 502 although 127.0.0.1:18081 works":                               ":18080 =:18081",
		"127.0.0.1:18080 times out; 127.0.0.1:18081 looks healthy":                               ":18080 =:18081",
		"127.0.0.1:18080 is down (127.0.0.1:18081: ok)":                                          ":18080 =:18081",
		"127.0.0.1:18080 500s. tested 127.0.0.1:18081 - works":                                   ":18080 =:18081",
		"we ruled out 127.0.0.1:18081. 127.0.0.1:18080 hangs":                                    ":18080 =:18081",
		"nothing wrong with 127.0.0.1:18081, 127.0.0.1:18080 refuses":                            ":18080 =:18081",
		"127.0.0.1:18080 antwortet nicht, 127.0.0.1:18081 läuft":                                 ":18080 =:18081",
		"127.0.0.1:18080 est lent, 127.0.0.1:18081 marche":                                       ":18080 =:18081",
		"127.0.0.1:18080 hangs. 127.0.0.1:18081 and 127.0.0.1:18082 are fine":                    ":18080 =:18081 =:18082",
		"127.0.0.1:18080 hangs, it's not 127.0.0.1:18081":                                        ":18080 -:18081 CORRECTS",
		"127.0.0.1:18081 is not the problem, 127.0.0.1:18080 is":                                 ":18080 =:18081",
		"127.0.0.1:18081 is innocent but 127.0.0.1:18080 is slow":                                ":18080 =:18081",
		"127.0.0.1:18080 is broken, ignore 127.0.0.1:18081":                                      ":18080 x:18081",
		"127.0.0.1:18080 is broken. Don't touch 127.0.0.1:18081!":                                ":18080 x:18081",
		"please leave 127.0.0.1:18081 alone, 127.0.0.1:18080 is down":                            ":18080 x:18081",
		"127.0.0.1:18080 is down, do not check 127.0.0.1:18081 and 127.0.0.1:18082":              ":18080 x:18081 x:18082",
		"127.0.0.1:18080 is down; 127.0.0.1:18081 is off limits":                                 ":18080 x:18081",
		"Finger weg von 127.0.0.1:18081, 127.0.0.1:18080 hängt":                                  ":18080 x:18081",
		"127.0.0.1:18080 is down and 127.0.0.1:18081 is fine":                                    ":18080 =:18081",
		"127.0.0.1:18080 is down while 127.0.0.1:18081 is fine":                                  ":18080 =:18081",
		"don't touch 127.0.0.1:18081, 127.0.0.1:18082 or 127.0.0.1:18083; 127.0.0.1:18080 hangs": ":18080 x:18081 x:18082 x:18083",
		"please check if 127.0.0.1:18081 and 127.0.0.1:18082 are fine, 127.0.0.1:18080 hangs":    ":18081 :18082 :18080",
		"don't touch 127.0.0.1:18081":                                                            "x:18081",
		"ignore 127.0.0.1:18081 and look at 127.0.0.1:18080":                                     ":18080 x:18081",
		"http://127.0.0.1:18080/healthz is ok but http://127.0.0.1:18080/cart gives 500":         ":18080/cart =:18080/healthz",
		"curl to https://shop.example.com/ works fine, https://api.example.com/v1 times out":     "api.example.com:443/v1 =shop.example.com:443",
		"The gateway http://127.0.0.1:18080/ answers 502. I looked at 127.0.0.1:18081: works.":   ":18080 =:18081",

		// a claim about the only endpoint, a doubt, a limit or a contradiction leaves the suspect
		"127.0.0.1:18080 works fine":                                                         ":18080",
		"127.0.0.1:18080 works fine but customers complain":                                  ":18080",
		"is 127.0.0.1:18081 ok? 127.0.0.1:18080 is down":                                     ":18081 :18080",
		"please check whether 127.0.0.1:18081 is fine, 127.0.0.1:18080 is down":              ":18081 :18080",
		"127.0.0.1:18080 is down and I am not sure 127.0.0.1:18081 works":                    ":18080 :18081",
		"127.0.0.1:18080 is down, 127.0.0.1:18081 was fine yesterday":                        ":18080 :18081",
		"127.0.0.1:18080 is down, 127.0.0.1:18081 works only sometimes":                      ":18080 :18081",
		"127.0.0.1:18080 is down, 127.0.0.1:18081 works but is slow":                         ":18080 :18081",
		"127.0.0.1:18080 is down, 127.0.0.1:18081 is up but answers 500":                     ":18080 :18081",
		"127.0.0.1:18080 is down, 127.0.0.1:18081 is not fine either":                        ":18080 :18081",
		"127.0.0.1:18080 is down, 127.0.0.1:18081 isn't working":                             ":18080 :18081",
		"nothing works on 127.0.0.1:18080 and 127.0.0.1:18081":                               ":18080 :18081",
		"127.0.0.1:18080 no longer works, 127.0.0.1:18081 neither":                           ":18080 :18081",
		"127.0.0.1:18080 works for nobody, 127.0.0.1:18081 refuses":                          ":18080 :18081",
		"127.0.0.1:18081 is fine they say, yet 127.0.0.1:18081 times out; 127.0.0.1:18080":   ":18081 :18080",
		"127.0.0.1:20000 is fast and slow, refuses and times out, works fine and gives 502":  ":20000",
		"make sure 127.0.0.1:18081 is reachable from 127.0.0.1:18080":                        ":18081 :18080",
		"when 127.0.0.1:18081 is up 127.0.0.1:18080 answers, else it times out":              ":18081 :18080",
		"127.0.0.1:18081 answers 503 and 127.0.0.1:18080 answers with a login page, no idea": ":18081 :18080",
	} {
		if got := heard(symptom.Parse(text)); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestTakenBack: words that take the target back and name no other, and words
// about the network that sound alike.
func TestTakenBack(t *testing.T) {
	for text, want := range map[string]bool{
		"sorry, I meant the other host": true, "wrong host": true, "no, wrong port!": true, "that's the wrong server": true,
		"you are looking at the wrong box.": true, "not that one": true, "ich meinte den anderen Rechner": true, "falscher Host": true,
		"traffic goes to the wrong server": false, "the other service is fine": false, "a different host answers": false, "wrong certificate": false,
		"not now": false, "no": false, "not yet": false, "is it the wrong host?": false, "nothing": false, "the name has the wrong address": false,
	} {
		if got := symptom.Parse(text).Correction; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
