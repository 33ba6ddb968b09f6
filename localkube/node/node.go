// Package node makes a worker out of namespaces of its own (processes, mounts, network, host name) with its own
// containerd, kubelet and kube-proxy, and does to it what can happen to a machine.
//
// The first process of the namespaces is the node: when it is killed, the kernel kills everything in them at once, as a
// power loss does.
package node

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"text/template"

	"github.com/governor-dev/governor/localkube/cgroup"
	"github.com/governor-dev/governor/localkube/network"
	"github.com/governor-dev/governor/localkube/networkpolicy"
	"github.com/governor-dev/governor/localkube/process"
)

// Node is one worker. Its fields are all that its processes need to know; they are kept in DIR/node.json.
type Node struct {
	// Name is the host name and the name of the Node object.
	Name string
	// Number is the node's place in the address plan, from 1.
	Number int
	// Zone is the value of the label topology.kubernetes.io/zone.
	Zone string
	// Plan is the cluster's address plan.
	Plan network.Plan
	// Group is the control group of everything on the node.
	Group cgroup.Group
	// Dir is the node's disk: configuration, logs, and what containerd and kubelet keep.
	Dir string
	// Volumes is the folder of the cluster's persistent volumes, seen by every node.
	Volumes string
	// Images is the folder of the archives that every node imports.
	Images string
	// Binaries are the folders that hold containerd, its shim, ctr, kubelet and kube-proxy.
	Binaries []string
	// APIServer is the URL of the API server.
	APIServer string
	// PauseImage is the image of a pod's sandbox.
	PauseImage string
	// FastDetection makes the node report often enough for a short grace period.
	FastDetection bool
}

// Socket is where containerd listens; /run belongs to the node alone.
func (Node) Socket() string { return "/run/containerd/containerd.sock" }

// Address is the node's IP address.
func (n Node) Address() netip.Addr { return n.Plan.Node(n.Number) }

// PodNetwork is where the node's pods get their addresses from.
func (n Node) PodNetwork() netip.Prefix { return n.Plan.Pods(n.Number) }

// AllPods is where the pods of all nodes get their addresses from.
func (n Node) AllPods() netip.Prefix { return n.Plan.AllPods() }

// DNS is the cluster's name server.
func (n Node) DNS() netip.Addr { return n.Plan.Service(10) }

// Pods is the control group of the node's pods.
func (n Node) Pods() cgroup.Group { return n.Group.Child("pods") }

func (n Node) program(name string, args ...string) process.Program {
	return process.Program{
		Group: n.Group.Child(name),
		Args:  append([]string{n.binary(name)}, args...),
		Env:   []string{"PATH=" + n.path()},
		Log:   filepath.Join(n.Dir, "logs", name+".log"),
	}
}

// binary is the path of a program in the node's folders, or its bare name, whose absence the start then reports.
func (n Node) binary(name string) string {
	for _, dir := range n.Binaries {
		if file := filepath.Join(dir, name); isFile(file) {
			return file
		}
	}
	return name
}

func isFile(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

func (n Node) path() string {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, dir := range n.Binaries {
		path = dir + ":" + path
	}
	return path
}

func (n Node) containerd() process.Program {
	return n.program("containerd", "--config", filepath.Join(n.Dir, "containerd.toml"))
}

func (n Node) kubelet() process.Program {
	return n.program("kubelet",
		"--config="+filepath.Join(n.Dir, "kubelet.yaml"),
		"--kubeconfig="+filepath.Join(n.Dir, "kubelet.kubeconfig"),
		"--hostname-override="+n.Name,
		"--node-ip="+n.Address().String(),
		"--node-labels=topology.kubernetes.io/zone="+n.Zone,
	)
}

func (n Node) kubeProxy() process.Program {
	return n.program("kube-proxy", "--config="+filepath.Join(n.Dir, "kube-proxy.yaml"))
}

// networkPolicy is localkube itself, which enforces NetworkPolicies.
func (n Node) networkPolicy() process.Program {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	p := n.program("networkpolicy")
	p.Args = []string{self, NetworkPolicyCommand, n.specFile()}
	return p
}

// EnforceNetworkPolicies gives the node that the file describes its rules until ctx ends.
func EnforceNetworkPolicies(ctx context.Context, specFile string) error {
	n, err := read(specFile)
	if err != nil {
		return err
	}
	return networkpolicy.Run(ctx, filepath.Join(n.Dir, "networkpolicy.kubeconfig"), n.Name)
}

// Programs are the programs that run on the node when all is well.
func (n Node) Programs() []process.Program {
	return []process.Program{n.containerd(), n.kubelet(), n.kubeProxy(), n.networkPolicy()}
}

//go:embed templates/*
var templates embed.FS

// WriteConfig writes the node's configuration files and node.json; certificates and kubeconfigs are the caller's.
func (n Node) WriteConfig() error {
	files := map[string]string{
		"containerd.toml":       "containerd.toml",
		"kubelet.yaml":          "kubelet.yaml",
		"kube-proxy.yaml":       "kube-proxy.yaml",
		"10-localkube.conflist": "cni/10-localkube.conflist",
	}
	for name, target := range files {
		if err := n.render(name, filepath.Join(n.Dir, target)); err != nil {
			return err
		}
	}
	if err := writeChanged(filepath.Join(n.Dir, "resolv.conf"), resolvConf()); err != nil {
		return err
	}
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	return writeChanged(n.specFile(), data)
}

func (n Node) specFile() string { return filepath.Join(n.Dir, "node.json") }

func (n Node) render(name, target string) error {
	t, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, n); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return writeChanged(target, out.Bytes())
}

// writeChanged writes only what differs: kube-proxy ends when its file is written, even with the same content.
func writeChanged(file string, data []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// read loads the node that file describes.
func read(file string) (n Node, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(data, &n)
}
