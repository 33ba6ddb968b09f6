package operator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/governor-dev/governor/engine"
)

func none(*engine.Operator) error { return nil }

// What is fixed in the manifests of an operator that is installed must not change with a release.
func TestNamesAreDerived(t *testing.T) {
	o, err := Options{Name: "governor", Register: none}.complete()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join([]string{o.Lease, o.WebhookService, o.WebhookConfiguration, o.Version}, " ")
	if want := "governor.governor.dev governor-webhook governor unreleased"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	secret := runCommand(o).Flags().Lookup("webhook-certificate-secret").DefValue
	if secret != "governor-webhook-certificate" {
		t.Errorf("the certificate is kept in %s", secret)
	}
}

func TestMistakesOfAnAuthorAreNamed(t *testing.T) {
	cases := map[string]struct {
		reason string
		o      Options
		want   string
	}{
		"NoName":     {"every other name is derived from it", Options{Register: none}, `Name ""`},
		"BadName":    {"it becomes the name of objects", Options{Name: "Candy_1", Register: none}, `Name "Candy_1"`},
		"NoApp":      {"an operator without applications does nothing", Options{Name: "candy"}, "Register is nil"},
		"Conversion": {"a webhook must answer the API server", Options{Name: "candy", Register: none, Converted: []string{"a.b"}}, "[a.b]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := c.o.complete(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	cmd := Command(Options{Name: "candy", Version: "v7", Register: none})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"version"})
	if err := cmd.Execute(); err != nil || out.String() != "v7\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	run, _, err := cmd.Find([]string{"run"})
	if err != nil || !strings.Contains(run.Example, "candy run --watch-namespaces") {
		t.Errorf("%v: %s", err, run.Example)
	}
	cmd.SetArgs([]string{"run", "--leader-elect-lease-seconds=2"})
	cmd.SetErr(&out)
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "use 3 or more") {
		t.Errorf("a lease that cannot be kept: %v", err)
	}
}
