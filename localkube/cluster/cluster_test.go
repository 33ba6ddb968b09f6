package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/governor-dev/governor/localkube/process"
)

func TestValidate(t *testing.T) {
	good := Options{Name: "demo", Nodes: 3, APIPort: 6443}
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"good":          {func(*Options) {}, ""},
		"upper case":    {func(o *Options) { o.Name = "Demo" }, `cluster name "Demo": must be at most 20 lower case letters`},
		"path":          {func(o *Options) { o.Name = "../x" }, `cluster name "../x"`},
		"too long":      {func(o *Options) { o.Name = strings.Repeat("a", 21) }, "at most 20"},
		"no nodes":      {func(o *Options) { o.Nodes = 0 }, "nodes: 0 is not between 1 and 50"},
		"too many":      {func(o *Options) { o.Nodes = 51 }, "nodes: 51 is not between 1 and 50"},
		"port too high": {func(o *Options) { o.APIPort = 70000 }, "API port: 70000 is not between 1 and 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			test.change(&o)
			err := o.Validate()
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAgree(t *testing.T) {
	c := &Cluster{Options: Options{Name: "demo", Nodes: 3, APIPort: 6443}, Version: "v1.2.3"}
	for name, test := range map[string]struct {
		change  func(*Options)
		version string
		want    string
	}{
		"same":       {func(*Options) {}, "v1.2.3", ""},
		"more nodes": {func(o *Options) { o.Nodes = 5 }, "v1.2.3", ""},
		"less nodes": {func(o *Options) { o.Nodes = 1 }, "v1.2.3", "nodes: cluster demo has 3"},
		"fast":       {func(o *Options) { o.FastNodeDetection = true }, "v1.2.3", "fast node detection"},
		"other port": {func(o *Options) { o.APIPort = 1 }, "v1.2.3", "API port: cluster demo was made with 6443"},
		"other Kube": {func(*Options) {}, "v1.3.0", "runs Kubernetes v1.2.3, this localkube brings v1.3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.Options
			test.change(&o)
			err := c.agree(o, Parts{Version: test.version})
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestZonesGoRound(t *testing.T) {
	c := &Cluster{Options: Options{Nodes: 4}}
	var zones []string
	for _, n := range c.Workers() {
		zones = append(zones, n.Zone)
	}
	if want := []string{"a", "b", "c", "a"}; !slices.Equal(zones, want) {
		t.Errorf("zones %v, want %v", zones, want)
	}
}

func TestMissingAncestors(t *testing.T) {
	dir := t.TempDir()
	got := missingAncestors(filepath.Join(dir, "a", "b"))
	if want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "a", "b")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := missingAncestors(dir); len(got) != 0 {
		t.Errorf("%s exists, but is called missing: %v", dir, got)
	}
}

func TestLinkFileKeepsWhatNodesHaveImported(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "image.tar"), filepath.Join(t.TempDir(), "images", "image.tar")
	write := func(content string) os.FileInfo {
		if err := os.WriteFile(from+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from+".new", from); err != nil {
			t.Fatal(err)
		}
		if err := linkFile(from, to); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(to)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write("one")
	if err := linkFile(from, to); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.Stat(to); !again.ModTime().Equal(first.ModTime()) {
		t.Error("the same archive got a new time: every node would import it again")
	}
	if second := write("other"); second.Size() == first.Size() {
		t.Error("a changed archive was not taken over")
	}
}

func TestWhatWasStoppedOnPurposeIsNotReportedAsEnded(t *testing.T) {
	p := process.Program{Group: "/localkube-no-such-group/program", Record: filepath.Join(t.TempDir(), "record")}
	for state, record := range map[string]string{"ended": `{"restarts": 2}`, "stopped": `{"stopped": true, "restarts": 2}`} {
		if err := os.WriteFile(p.Record, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		got := describe("control-plane", p)
		if got.State != state || got.Restarts != 2 || (Status{Components: []Component{got}}).Healthy() != (state == "stopped") {
			t.Errorf("%s is described as %+v", record, got)
		}
	}
}
