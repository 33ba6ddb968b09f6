package build

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/semver"
)

func TestFamiliesArePinned(t *testing.T) {
	for _, f := range all {
		t.Run(f.name, func(t *testing.T) {
			if v := f.version(); !semver.IsValid(v) {
				t.Errorf("version %q", v)
			}
			if f.file("mod") == "" || f.module != "" && f.file("sum") == "" {
				t.Error("no pins")
			}
		})
	}
}

func TestKubernetesTellsItsVersion(t *testing.T) {
	f, err := familyNamed("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	v := strings.Split(strings.TrimPrefix(KubernetesVersion(), "v"), ".")
	flags := strings.Join(f.flags(), " ")
	for _, want := range []string{"gitVersion=" + KubernetesVersion(), "gitMajor=" + v[0], "gitMinor=" + v[1]} {
		if !strings.Contains(flags, want) {
			t.Errorf("flags %q lack %q", flags, want)
		}
	}
}

func TestUnknownFamily(t *testing.T) {
	_, err := Cache{Dir: t.TempDir()}.Family(context.Background(), "docker")
	if err == nil || !strings.Contains(err.Error(), "containerd") {
		t.Errorf("error %v does not list the families", err)
	}
}

func TestKey(t *testing.T) {
	base := func() target {
		return target{files: map[string]string{"go.mod": "m", "go.sum": "s"}, pattern: "tool", flags: []string{"-a"}}
	}
	first := base().key("go1.26.8")
	if first != base().key("go1.26.8") {
		t.Fatal("the same target has two keys")
	}
	changes := map[string]func(*target){
		"mod":     func(t *target) { t.files["go.mod"] = "n" },
		"main":    func(t *target) { t.files["main.go"] = "" },
		"moved":   func(t *target) { t.files["go.mod"], t.files["go.sum"] = "ms", "" },
		"flags":   func(t *target) { t.flags = []string{"-b"} },
		"rename":  func(t *target) { t.rename = map[string]string{"a": "b"} },
		"pattern": func(t *target) { t.pattern = "." },
		"prepare": func(t *target) { t.prepare = []string{"get"} },
	}
	for name, change := range changes {
		changed := base()
		change(&changed)
		if changed.key("go1.26.8") == first {
			t.Errorf("another %s has the same key", name)
		}
	}
	if base().key("go1.27") == first {
		t.Error("another Go has the same key")
	}
}

func TestToolNames(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3":         "server",
		"sigs.k8s.io/kwok/cmd/kwok":         "kwok",
		"gopkg.in/yaml.v3":                  "yaml",
		"github.com/versity/versitygw/v2/x": "x",
	} {
		if got := (Tool{Package: pkg}).Name(); got != want {
			t.Errorf("%s is called %s, want %s", pkg, got, want)
		}
	}
}

func TestToolsAreChecked(t *testing.T) {
	for name, tools := range map[string][]Tool{
		"none":          nil,
		"latest":        {{Package: "a.b/c", Version: "latest"}},
		"short version": {{Package: "a.b/c", Version: "v1"}},
		"no path":       {{Package: "../x", Version: "v1.0.0"}},
		"output folder": {{Package: "a.b/c", Version: "v1.0.0", Output: "x/y"}},
		"same name":     {{Package: "a.b/c", Version: "v1.0.0"}, {Package: "d.e/c", Version: "v1.0.0"}},
	} {
		if _, err := toolsTarget(tools); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := toolsTarget([]Tool{{Package: "a.b/c", Version: "v1.0.0+incompatible", Output: "d"}}); err != nil {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	for said, want := range map[string]string{
		"go: go.mod requires go >= 1.27 (running go 1.26.8; GOTOOLCHAIN=local)": "too old",
		"write /x: no space left on device":                                     "disk is full",
		"dial tcp: lookup proxy: no such host":                                  "GOPROXY",
		"go: x@v1: reading x: 403 Forbidden":                                    "GOPROXY",
		"verifying x: checksum mismatch":                                        "do not use it",
		"link: signal: killed":                                                  "memory",
		"main.go:1: syntax error":                                               "go build: exit status 1",
	} {
		err := explain("build", said, errors.New("exit status 1"))
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), said) {
			t.Errorf("%q explained as %q, want %q and what was said", said, err, want)
		}
	}
}

func TestTranscriptKeepsTheEnd(t *testing.T) {
	var packages int
	tr := &transcript{onLine: counter(isPackage, func(n int) { packages = n })}
	io.WriteString(tr, "go: downloading x v1\nk8s.io/api/core/v1\nk8s.io/x\n# k8s.io/x\nmain.go:1:2: und")
	io.WriteString(tr, "efined: y\nsame line\nsame line\n")
	if packages != 2 {
		t.Errorf("%d packages, want 2", packages)
	}
	if got, want := tr.text(), "# k8s.io/x\nmain.go:1:2: undefined: y\nsame line\n"; got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	p := &progress{out: io.Discard, live: true, now: func() time.Time { return now }, began: start}
	for _, title := range []string{"kubernetes v1.37.1", "containerd v2.4.2", "etcd v3.6.16"} {
		p.rows = append(p.rows, row{title: title, state: waiting, since: start})
	}
	p.set(0, downloading)
	now = start.Add(65 * time.Second)
	p.set(0, compiling)
	p.count(0, 312, "packages")
	p.set(1, downloading)
	now = start.Add(95 * time.Second)
	want := []string{
		"kubernetes v1.37.1   compiling    0:30  312 packages",
		"containerd v2.4.2    downloading  0:30",
		"etcd v3.6.16         waiting",
		"0 of 3 built, 1:35",
	}
	if got := p.table(80); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, line := range p.table(20) {
		if len(line) >= 20 {
			t.Errorf("%q would wrap", line)
		}
	}
	p.set(0, done)
	if got := p.table(80)[0]; !strings.HasPrefix(got, "kubernetes v1.37.1   done         1:35") {
		t.Errorf("time of all the work is not told: %q", got)
	}
}

func TestLockKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock", "x")
	held, err := lock(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("second lock: %v", err)
	}
	held.Close()
	again, err := lock(context.Background(), path, func() { t.Error("still locked") })
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	cache := Cache{Dir: t.TempDir()}
	broken := target{
		name: "broken", pattern: ".", flags: []string{"-buildvcs=false"},
		files: map[string]string{"go.mod": "module broken\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() { undefined() }\n"},
	}
	for range 2 { // the second would hang if the first kept the lock
		_, err := cache.build(context.Background(), []target{broken})
		if err == nil || !strings.Contains(err.Error(), "undefined: undefined") || !strings.Contains(err.Error(), "broken.log") {
			t.Fatalf("error %v does not show the compiler's words and the log's path", err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(cache.Dir, "bin")); err == nil && len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Cache{Dir: filepath.Join(file, "cache")}).Family(context.Background(), "pause"); err == nil || !strings.Contains(err.Error(), "GOVERNOR_CACHE") {
		t.Errorf("error %v does not name GOVERNOR_CACHE", err)
	}
}
