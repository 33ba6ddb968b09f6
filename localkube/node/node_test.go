package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestReachableNameServers(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		conf   string
		want   bool
	}{
		"ordinary":         {"a name server of the network can be asked from a node", "search x\nnameserver 10.1.1.1\n", true},
		"systemd-resolved": {"127.0.0.53 is the machine's own loopback, not the node's", "nameserver 127.0.0.53\n", false},
		"none":             {"no name server at all", "search example.com\n", false},
		"broken":           {"an address that is none", "nameserver what\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reachable([]byte(test.conf)); got != test.want {
				t.Errorf("%s: reachable = %v, want %v", test.reason, got, test.want)
			}
		})
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		`/plain`:            "/plain",
		`/with\040blank`:    "/with blank",
		`/a\134b`:           `/a\b`,
		`/ends\04`:          `/ends\04`,
		`/not\999an escape`: `/not\999an escape`,
	} {
		if got := unescape(in); got != want {
			t.Errorf("unescape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestConfigIsWrittenOnceAndValid(t *testing.T) {
	n := Node{Name: "n2", Number: 2, Dir: t.TempDir(), Group: "/localkube/x/n2", PauseImage: "pause:1"}
	if err := n.WriteConfig(); err != nil {
		t.Fatal(err)
	}
	written := map[string]os.FileInfo{}
	for _, file := range []string{"kubelet.yaml", "kube-proxy.yaml", "containerd.toml", "cni/10-localkube.conflist", "node.json"} {
		info, err := os.Stat(filepath.Join(n.Dir, file))
		if err != nil {
			t.Fatal(err)
		}
		written[file] = info
		data, _ := os.ReadFile(filepath.Join(n.Dir, file))
		var content map[string]any
		if err := yaml.Unmarshal(data, &content); err != nil && !strings.HasSuffix(file, ".toml") {
			t.Errorf("%s: %v", file, err)
		}
		if strings.Contains(string(data), "<no value>") {
			t.Errorf("%s has a hole:\n%s", file, data)
		}
	}
	if err := n.WriteConfig(); err != nil {
		t.Fatal(err)
	}
	for file, before := range written {
		if after, _ := os.Stat(filepath.Join(n.Dir, file)); !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("%s was written again: kube-proxy ends when its configuration is", file)
		}
	}
	if again, err := read(n.specFile()); err != nil || again.Name != n.Name || again.Group != n.Group {
		t.Errorf("node.json does not give the node back: %+v, %v", again, err)
	}
}
