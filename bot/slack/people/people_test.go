package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/access"
)

// api answers as a table says, and counts.
type api struct {
	users   func(id string) (*slackgo.User, error)
	members func(ctx context.Context, group string) ([]string, error)
	asked   atomic.Int64
}

func (a *api) GetUserInfoContext(_ context.Context, id string, _ ...slackgo.GetUserInfoOption) (*slackgo.User, error) {
	a.asked.Add(1)
	return a.users(id)
}

func (a *api) GetUserGroupMembersContext(ctx context.Context, g string, _ ...slackgo.GetUserGroupMembersOption) ([]string, error) {
	a.asked.Add(1)
	return a.members(ctx, g)
}

func (a *api) GetConversationInfoContext(_ context.Context, in *slackgo.GetConversationInfoInput) (*slackgo.Channel, error) {
	if in.ChannelID == "C0NONE" {
		return nil, slackgo.SlackErrorResponse{Err: "channel_not_found"}
	}
	return &slackgo.Channel{}, nil
}

func home() Home { return Home{Team: "T1"} }

func grid() Home { return Home{Team: "T1", Enterprise: "E1"} }

func TestJudge(t *testing.T) {
	in := func(edit func(*slackgo.User)) *slackgo.User {
		u := &slackgo.User{ID: "U1", TeamID: "T1", Name: "kim"}
		edit(u)
		return u
	}
	org := func(team, enterprise string, teams ...string) *slackgo.User {
		return &slackgo.User{ID: "W1", TeamID: team, Enterprise: slackgo.EnterpriseUser{ID: "W1", EnterpriseID: enterprise, Teams: teams}}
	}
	orgWide := Home{Enterprise: "E1"}
	for _, tt := range []struct {
		name string
		u    *slackgo.User
		team string
		home Home
		want string // "": may decide
	}{
		{"a member", in(func(*slackgo.User) {}), "T1", home(), ""},
		{"without a team in the delivery", in(func(*slackgo.User) {}), "", home(), ""},
		{"a click from another workspace", in(func(*slackgo.User) {}), "T2", home(), "another workspace"},
		{"whose team is not told", in(func(u *slackgo.User) { u.TeamID = "" }), "T1", home(), "another workspace"},
		{"of another team", in(func(u *slackgo.User) { u.TeamID = "T2" }), "T1", home(), "another workspace"},
		{"a stranger", in(func(u *slackgo.User) { u.IsStranger = true }), "T1", home(), "another workspace"},
		{"invited only", in(func(u *slackgo.User) { u.IsInvitedUser = true }), "T1", home(), "another workspace"},
		{"a guest", in(func(u *slackgo.User) { u.IsRestricted = true }), "T1", home(), "guests"},
		{"a guest of one channel", in(func(u *slackgo.User) { u.IsUltraRestricted = true }), "T1", home(), "guests"},
		{"a bot", in(func(u *slackgo.User) { u.IsBot = true }), "T1", home(), "bots"},
		{"a workflow", in(func(u *slackgo.User) { u.IsWorkflowBot = true }), "T1", home(), "bots"},
		{"a connector", in(func(u *slackgo.User) { u.IsConnectorBot = true }), "T1", home(), "bots"},
		{"slackbot", in(func(u *slackgo.User) { u.ID = "USLACKBOT" }), "T1", home(), "bots"},
		{"deactivated", in(func(u *slackgo.User) { u.Deleted = true }), "T1", home(), "deactivated"},
		{"before the bot knows where it is", in(func(*slackgo.User) {}), "T1", Home{}, "another workspace"},
		{"of an organisation, outside of one", org("T1", "E9", "T1"), "T1", home(), ""},
		{"grid: home workspace", org("T1", "E1", "T1"), "T1", grid(), ""},
		{"grid: from another workspace of it", org("T7", "E1", "T7", "T8"), "T7", grid(), ""},
		{"grid: clicked in a further workspace of it", org("T7", "E1", "T7", "T8"), "T8", grid(), ""},
		{"grid: the organisation as the team", org("T7", "E1", "T7"), "E1", grid(), ""},
		{"grid: a workspace that is not theirs", org("T7", "E1", "T7"), "T9", grid(), "another workspace"},
		{"grid: another organisation", org("T5", "E2", "T5"), "T5", grid(), "another workspace"},
		{"grid: another organisation that says it is here", org("T1", "E2", "T1"), "T1", grid(), "another workspace"},
		{"grid: a click that names another organisation", org("T7", "E1", "T7"), "E2", grid(), "another workspace"},
		{"grid: no organisation, this workspace", org("T1", ""), "T1", grid(), ""},
		{"grid: no organisation, another workspace", org("T2", ""), "T2", grid(), "another workspace"},
		{"grid: a guest of it", func() *slackgo.User { u := org("T1", "E1", "T1"); u.IsRestricted = true; return u }(), "T1", grid(), "guests"},
		{"grid: a stranger", func() *slackgo.User { u := org("T1", "E1", "T1"); u.IsStranger = true; return u }(), "T1", grid(), "another workspace"},
		{"installed for all: of it", org("T7", "E1", "T7"), "T7", orgWide, ""},
		{"installed for all: without a team", org("T7", "E1", "T7"), "", orgWide, ""},
		{"installed for all: of another one", org("T7", "E2", "T7"), "", orgWide, "another workspace"},
		{"installed for all: of none", org("", ""), "", orgWide, "another workspace"},
	} {
		p := Judge(tt.u, tt.team, tt.home)
		if ok := p.Active && p.Human && p.Member; ok != (tt.want == "") || !strings.Contains(p.Explain, tt.want) {
			t.Errorf("%s: %+v, want %q", tt.name, p, tt.want)
		}
	}
}

// A storm of clicks is one call, and what it answers is believed for a minute from
// when it was asked.
func TestStormIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{members: func(context.Context, string) ([]string, error) {
			time.Sleep(900 * time.Millisecond)
			return []string{"U1"}, nil
		}}
		d := New(a, home, 2*time.Second)
		storm := func() {
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() {
					if got, err := d.Members(context.Background(), "S1"); err != nil || len(got) != 1 {
						t.Errorf("%v, %v", got, err)
					}
				})
			}
			wg.Wait()
		}
		storm()
		storm()
		if n := a.asked.Load(); n != 1 {
			t.Errorf("%d calls for two storms within a minute", n)
		}
		time.Sleep(Age - 900*time.Millisecond - time.Millisecond)
		storm()
		if n := a.asked.Load(); n != 1 {
			t.Errorf("%d calls before the minute is over", n)
		}
		time.Sleep(time.Millisecond)
		storm()
		if n := a.asked.Load(); n != 2 {
			t.Errorf("%d calls after the minute, want 2: its age counts from when it was asked", n)
		}
	})
}

// Look-ups that fail refuse all who wait for them, are not repeated at once, and stay
// below what Slack allows however hard people press.
func TestFailuresAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		a := &api{members: func(context.Context, string) ([]string, error) {
			if down {
				return nil, errors.New("internal_error")
			}
			return []string{"U1"}, nil
		}}
		d := New(a, home, 2*time.Second)
		for range 6000 { // a hundred a second for a minute
			if _, err := d.Members(t.Context(), "S1"); err == nil {
				t.Fatal("a look-up that fails lets somebody")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := a.asked.Load(); n > Budget {
			t.Errorf("%d look-ups within a minute", n)
		}
		down = false
		time.Sleep(4 * time.Second)
		if _, err := d.Members(t.Context(), "S1"); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

func TestBudgetIsForAllGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{members: func(context.Context, string) ([]string, error) { return nil, nil }}
		d := New(a, home, 2*time.Second)
		refused := 0
		for i := range 30 {
			if _, err := d.Members(t.Context(), fmt.Sprintf("S%d", i)); errors.Is(err, ErrBudget) {
				refused++
			}
		}
		if n := a.asked.Load(); n != Budget || refused != 30-Budget {
			t.Errorf("%d look-ups, %d refused", n, refused)
		}
		time.Sleep(time.Minute)
		if _, err := d.Members(t.Context(), "S29"); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

func TestRateLimitIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{users: func(string) (*slackgo.User, error) {
			return nil, &slackgo.RateLimitedError{RetryAfter: 30 * time.Second}
		}}
		d := New(a, home, 2*time.Second)
		for i := range 29 {
			_, err := d.Person(t.Context(), "U1", "")
			var limited *slackgo.RateLimitedError
			if !errors.As(err, &limited) {
				t.Fatalf("a limited look-up: %v", err)
			}
			if want := time.Duration(30-i) * time.Second; limited.RetryAfter != want { // what is left, not what it was
				t.Fatalf("after %d s: wait %s, want %s", i, limited.RetryAfter, want)
			}
			time.Sleep(time.Second)
		}
		if n := a.asked.Load(); n != 1 {
			t.Errorf("%d calls within Retry-After", n)
		}
	})
}

// Whoever asked first and gave up does not take the others with them, and a look-up
// that never answers ends in time.
func TestSlowLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{members: func(ctx context.Context, _ string) ([]string, error) {
			select {
			case <-time.After(time.Second):
				return []string{"U1"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		d := New(a, home, 2*time.Second)
		hasty, leave := context.WithCancel(t.Context())
		go d.Members(hasty, "S1")
		synctest.Wait()
		var got []string
		var err error
		done := make(chan struct{})
		go func() { defer close(done); got, err = d.Members(t.Context(), "S1") }()
		synctest.Wait()
		leave()
		<-done
		if err != nil || len(got) != 1 {
			t.Errorf("%v, %v", got, err)
		}
		short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		go d.Members(t.Context(), "S2")
		synctest.Wait()
		if _, err := d.Members(short, "S2"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is over: %v", err)
		}
		a.members = func(ctx context.Context, _ string) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }
		begun := time.Now()
		if _, err := d.Members(t.Context(), "S3"); err == nil || time.Since(begun) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestAnotherUserIsNobody(t *testing.T) {
	a := &api{users: func(string) (*slackgo.User, error) { return &slackgo.User{ID: "U2", TeamID: "T1"}, nil }}
	if p, err := New(a, home, time.Second).Person(t.Context(), "U1", "T1"); err == nil {
		t.Errorf("an answer about somebody else: %+v", p)
	}
}

func TestManyUsersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{users: func(id string) (*slackgo.User, error) { return &slackgo.User{ID: id, TeamID: "T1"}, nil }}
		d := New(a, home, time.Second)
		for i := range kept {
			if _, err := d.Person(t.Context(), fmt.Sprintf("U%d", i), ""); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(Age)
		if _, err := d.Person(t.Context(), "UNEW", ""); err != nil || len(d.users.m) != 1 {
			t.Errorf("%d are kept, %v", len(d.users.m), err)
		}
	})
}

func TestKnown(t *testing.T) {
	a := &api{
		users: func(id string) (*slackgo.User, error) {
			if id == "U0NONE" {
				return nil, slackgo.SlackErrorResponse{Err: "user_not_found"}
			}
			if id == "U0SLOW" {
				return nil, errors.New("timeout")
			}
			return &slackgo.User{ID: id, TeamID: "T1"}, nil
		},
		members: func(_ context.Context, g string) ([]string, error) {
			if g == "S0NONE" {
				return nil, slackgo.SlackErrorResponse{Err: "no_such_subteam"}
			}
			return nil, nil
		},
	}
	for _, tt := range []struct {
		line access.Line
		want string
	}{
		{access.Line{N: 3, Channel: "*", Who: []string{"U1", "S1"}}, ""},
		{access.Line{N: 3, Channel: "C1", Who: nil}, ""},
		{access.Line{N: 3, Channel: "*", Who: []string{"U1", "U0NONE"}}, "line 3: Slack does not know U0NONE"},
		{access.Line{N: 4, Channel: "*", Who: []string{"S0NONE"}}, "line 4: Slack does not know S0NONE"},
		{access.Line{N: 5, Channel: "C0NONE", Who: []string{"U1"}}, "line 5: Slack does not know C0NONE, or the bot is not in that private channel"},
		{access.Line{N: 6, Channel: "*", Who: []string{"U0SLOW"}}, ""},
	} {
		err := New(a, home, time.Second).Known(t.Context(), []access.Line{tt.line}, 60)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%+v: %v", tt.line, err)
		}
	}
	a.asked.Store(0)
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("U%d", i))
	}
	if err := New(a, home, time.Second).Known(t.Context(), []access.Line{{Channel: "*", Who: many}}, 60); err != nil || a.asked.Load() > 60 {
		t.Errorf("%v, %d look-ups", err, a.asked.Load())
	}
}

// Names in what anybody writes are looked up within a budget of their own, so that those
// who decide can be looked up all the same, and not after ctx has ended.
func TestNamesLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{users: func(id string) (*slackgo.User, error) {
			return &slackgo.User{ID: id, TeamID: "T1", Name: "name of " + id}, nil
		}}
		d := New(a, home, time.Second)
		named := 0
		for i := range 300 {
			if d.Name(t.Context(), fmt.Sprint("U", i)) != "" {
				named++
			}
		}
		if named != Names || a.asked.Load() != Names {
			t.Errorf("%d names after %d look-ups, want %d", named, a.asked.Load(), Names)
		}
		if got := d.Name(t.Context(), "U0"); got != "name of U0" {
			t.Errorf("a name that is known: %q", got)
		}
		if p, err := d.Person(t.Context(), "U0APPROVER", "T1"); err != nil || !p.Member {
			t.Errorf("an approver: %+v, %v", p, err)
		}
		time.Sleep(time.Minute)
		if got := d.Name(t.Context(), "U299"); got != "name of U299" {
			t.Errorf("a minute later: %q", got)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if got, n := d.Name(ended, "U298"), a.asked.Load(); got != "" || n != Names+2 {
			t.Errorf("after the end: %q, %d look-ups", got, n)
		}
	})
}

// What says when to try again counts down while it is remembered.
func TestRetryAfterCountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{members: func(context.Context, string) ([]string, error) {
			return nil, fmt.Errorf("read group: %w", &slackgo.RateLimitedError{RetryAfter: 30 * time.Second})
		}}
		d := New(a, home, time.Second)
		for _, tt := range []struct {
			after time.Duration
			want  string
		}{{0, "retry after 30s"}, {10 * time.Second, "retry after 20s"}, {19500 * time.Millisecond, "retry after 1s"}} {
			time.Sleep(tt.after)
			if _, err := d.Members(t.Context(), "S1"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("after %s: %v, want %s", tt.after, err, tt.want)
			}
		}
		if n := a.asked.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// Two look-ups that are slow one after the other take no more time than whoever pressed has, and refuse; the
// next press has their answers.
func TestSlowLookUpsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func() { time.Sleep(1500 * time.Millisecond) }
		a := &api{
			users: func(id string) (*slackgo.User, error) {
				slow()
				return &slackgo.User{ID: id, TeamID: "T1"}, nil
			},
			members: func(context.Context, string) ([]string, error) {
				slow()
				return []string{"U1"}, nil
			},
		}
		d := New(a, home, 2*time.Second)
		rules := access.Rules{Approvers: []string{"S1"}, Self: true}
		press := func() (string, bool, time.Duration) {
			ctx, done := context.WithTimeout(t.Context(), 2*time.Second)
			defer done()
			begun := time.Now()
			why, ok := rules.May(ctx, d, "U1", "T1", access.About{Channel: "C1"})
			return why, ok, time.Since(begun)
		}
		if why, ok, took := press(); ok || took > 2*time.Second || !strings.Contains(why, "could not be read") {
			t.Errorf("%v %q after %s", ok, why, took)
		}
		time.Sleep(time.Second)
		if why, ok, took := press(); !ok || took != 0 {
			t.Errorf("the next press: %v %q after %s", ok, why, took)
		}
	})
}

// A look-up that panics refuses, and takes nobody with it.
func TestLookUpPanics(t *testing.T) {
	a := &api{users: func(string) (*slackgo.User, error) { panic("odd answer") }}
	if _, err := New(a, home, time.Second).Person(t.Context(), "U1", ""); err == nil || !strings.Contains(err.Error(), "odd answer") {
		t.Errorf("%v", err)
	}
}
