package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Seed is what a new workspace starts with. It is plain JSON, so that tests and people can bring
// their own.
type Seed struct {
	Team     Team      `json:"team"`
	Users    []User    `json:"users"`
	Groups   []Group   `json:"groups"`
	Channels []Channel `json:"channels"`
	// Approvers names the users and groups the lab shows as approvers unless it is told otherwise.
	Approvers []string `json:"approvers"`
}

// ReadSeed reads a seed from a JSON file. Unknown members are errors, as are people and channels
// without an id or name.
func ReadSeed(path string) (Seed, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Seed{}, fmt.Errorf("reading seed: %w", err)
	}
	var s Seed
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Seed{}, fmt.Errorf("reading seed %s: %w", path, err)
	}
	for _, u := range s.Users {
		if u.ID == "" || u.Name == "" || u.TeamID == "" {
			return Seed{}, fmt.Errorf("reading seed %s: user %+v: want id, name and team_id", path, u)
		}
	}
	for _, c := range s.Channels {
		if c.ID == "" || c.Name == "" {
			return Seed{}, fmt.Errorf("reading seed %s: channel %+v: want id and name", path, c)
		}
	}
	if s.Team.ID == "" || s.Team.BotUID == "" || s.Team.BotID == "" || s.Team.AppID == "" {
		return Seed{}, fmt.Errorf("reading seed %s: team: want id, app_id, bot_id and bot_user_id", path)
	}
	return s, nil
}

// DefaultSeed is an operations team: roles instead of names, two on-call engineers who may approve
// and a commander, people who may not (one of them a guest, one from another company), a bot that
// is not ours, a deactivated account, and channels enough to spread load over twenty.
func DefaultSeed() Seed {
	const team = "T0GHOSTLAB"
	person := func(id, name, real, title string) User {
		return User{ID: id, TeamID: team, Name: name, RealName: real, Title: title, Email: name + "@example.com"}
	}
	s := Seed{
		Team: Team{
			ID: team, Name: "Ghost Lab", Domain: "ghostlab", AppID: "A0GHOSTBOT", BotID: "B0GHOSTBOT", BotUID: "U0GHOSTBOT"},
		Groups: []Group{
			{ID: "S0NETOPS01", Handle: "netops-oncall", Name: "Network on-call", Users: []string{"U0ONCALL01", "U0ONCALL02"}}},
		Approvers: []string{"S0NETOPS01", "U0COMMAND1"},
	}
	oncall := person("U0ONCALL01", "oncall-netops", "Network on-call", "may approve")
	second := person("U0ONCALL02", "oncall-netops-2", "Network on-call (second)", "may approve")
	commander := person("U0COMMAND1", "commander", "Incident commander", "may approve")
	commander.Admin = true
	web := person("U0WEBDEV01", "oncall-checkout", "Checkout on-call", "may not approve")
	support := person("U0SUPPORT1", "support-desk", "Support desk", "may not approve")
	guest := person("U0GUESTVND", "guest-vendor", "Vendor guest", "guest, may not approve")
	guest.Restricted = true
	partner := person("U0PARTNER1", "partner-carrier", "Carrier partner", "other company, may not approve")
	partner.TeamID, partner.Stranger = "T0PARTNER1", true
	gone := person("U0FORMER01", "former-oncall", "Former on-call", "deactivated")
	gone.Deleted = true
	alerts := person("U0ALERTS01", "alerts", "Alerts", "app")
	alerts.Bot = true
	ghost := person("U0GHOSTBOT", "ghost", "Ghost", "app")
	ghost.Bot = true
	s.Users = []User{oncall, second, commander, web, support, guest, partner, gone, alerts, ghost}
	s.Channels = seedChannels(s.Users)
	return s
}

func seedChannels(users []User) []Channel {
	var all, others []string
	for _, u := range users {
		if !u.Deleted {
			all = append(all, u.ID)
		}
	}
	others = slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id == "U0GHOSTBOT" || id == "U0PARTNER1" })
	var out []Channel
	add := func(name, topic string, members []string) {
		out = append(out, Channel{
			ID: fmt.Sprintf("C0LAB%05d", len(out)+1), Name: name, Topic: topic, Created: 1700000000, Members: slices.Clone(members)})
	}
	for _, c := range [][2]string{
		{"incidents", "Something is broken? Type /ghost investigate and say what you see."},
		{"network", "Routers, links, load balancers"}, {"general", "Everybody"}, {"checkout", "Checkout service"},
		{"payments", "Payments service"}, {"search", "Search service"}, {"identity", "Sign-in"},
		{"storage", "Object and block storage"}, {"databases", "Database fleet"}, {"queues", "Message queues"},
		{"dns", "Names and resolvers"}, {"edge", "CDN and edge"}, {"load-balancers", "Pools and health checks"},
		{"vpn", "Remote access"}, {"firewalls", "Rules and changes"}, {"observability", "Metrics, logs, traces"},
		{"deploys", "What went out when"}, {"capacity", "Headroom"}, {"region-east", "Region east"},
		{"region-west", "Region west"}, {"carriers", "Transit and peering"}, {"mobile", "Mobile apps"}, {"support", "Customer reports"},
	} {
		add(c[0], c[1], all)
	}
	add("lounge", "Off topic. The bot and partners are not in here.", others)
	add("archive-2024", "Closed", all)
	out[len(out)-1].Archived = true
	return out
}
