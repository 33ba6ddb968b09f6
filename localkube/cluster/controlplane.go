package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/governor-dev/governor/localkube/networkpolicy"
	"github.com/governor-dev/governor/localkube/pki"
	"github.com/governor-dev/governor/localkube/process"
	"github.com/governor-dev/governor/localkube/storage"
)

// identities are the clients of the API server, each with the name that Kubernetes' own RBAC knows, by kubeconfig.
var identities = map[string]pki.Identity{
	"admin":                   {User: "kubernetes-admin", Groups: []string{"system:masters"}},
	"kube-controller-manager": {User: "system:kube-controller-manager"},
	"kube-scheduler":          {User: "system:kube-scheduler"},
	"kube-proxy":              {User: "system:kube-proxy"},
	"provisioner":             {User: storage.User},
	"networkpolicy":           {User: networkpolicy.User},
}

func (c *Cluster) pkiDir() string { return c.path("pki") }

// certify makes every certificate, key and kubeconfig of the control plane that is not there yet.
func (c *Cluster) certify() (*pki.Authority, error) {
	ca, err := pki.OpenAuthority(c.pkiDir(), "ca")
	if err != nil {
		return nil, err
	}
	hosts := []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
		c.Plan.Gateway().String(), c.Plan.Service(1).String(), "127.0.0.1",
	}
	if _, _, err := ca.Issue("apiserver", pki.Identity{User: "kube-apiserver", Hosts: hosts}); err != nil {
		return nil, err
	}
	kubeletClient := pki.Identity{User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}
	if _, _, err := ca.Issue("apiserver-kubelet-client", kubeletClient); err != nil {
		return nil, err
	}
	for name, id := range identities {
		if err := ca.Kubeconfig(c.path(name+".kubeconfig"), "localkube-"+c.Name, c.APIServer(), id); err != nil {
			return nil, err
		}
	}
	if _, _, err := pki.ServiceAccountKey(c.pkiDir()); err != nil {
		return nil, err
	}
	return ca, c.certifyApart()
}

// certifyApart makes what must not be signed by the cluster's authority: etcd and the aggregator trust their own alone.
func (c *Cluster) certifyApart() error {
	etcd, err := pki.OpenAuthority(c.pkiDir(), "etcd-ca")
	if err != nil {
		return err
	}
	if _, _, err := etcd.Issue("etcd", pki.Identity{User: "etcd", Hosts: []string{c.Plan.Loopback().String()}}); err != nil {
		return err
	}
	proxy, err := pki.OpenAuthority(c.pkiDir(), "front-proxy-ca")
	if err != nil {
		return err
	}
	_, _, err = proxy.Issue("front-proxy-client", pki.Identity{User: "front-proxy-client"})
	return err
}

func (c *Cluster) key(name string) string { return filepath.Join(c.pkiDir(), name) }

func (c *Cluster) program(name string, args ...string) process.Program {
	return process.Program{
		Group: c.group().Child(name),
		Args:  append([]string{c.Binary(name)}, args...),
		Log:   c.path("logs", name+".log"),
		// Only the supervisor itself has no record: nothing but `up` restarts it.
		Record: c.path("programs", name+".json"),
	}
}

// ControlPlane are the programs that run on the machine itself when all is well.
func (c *Cluster) ControlPlane() []process.Program {
	return append(c.supervised(), c.supervisor())
}

// supervised are the programs that are restarted when they end by themselves. Kubernetes leaves that to a kubelet or to
// systemd: a scheduler ends itself, for example, when its cache contradicts the API server after an outage.
func (c *Cluster) supervised() []process.Program {
	return []process.Program{c.etcd(), c.apiServer(), c.controllerManager(), c.scheduler(), c.provisioner()}
}

func (c *Cluster) etcdURL(port int) string {
	return fmt.Sprintf("https://%s:%d", c.Plan.Loopback(), port)
}

func (c *Cluster) etcd() process.Program {
	return c.program("etcd",
		"--name=default",
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+c.etcdURL(etcdClientPort), "--advertise-client-urls="+c.etcdURL(etcdClientPort),
		"--listen-peer-urls="+c.etcdURL(etcdPeerPort), "--initial-advertise-peer-urls="+c.etcdURL(etcdPeerPort),
		"--initial-cluster=default="+c.etcdURL(etcdPeerPort),
		"--cert-file="+c.key("etcd.crt"), "--key-file="+c.key("etcd.key"),
		"--client-cert-auth", "--trusted-ca-file="+c.key("etcd-ca.crt"),
		"--peer-cert-file="+c.key("etcd.crt"), "--peer-key-file="+c.key("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+c.key("etcd-ca.crt"),
		// This cluster may be lost with its machine; its disk is better used by the applications on it.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

func (c *Cluster) apiServer() process.Program {
	args := []string{
		"--advertise-address=" + c.Plan.Gateway().String(), "--bind-address=" + c.Plan.Gateway().String(),
		fmt.Sprintf("--secure-port=%d", c.APIPort),
		"--etcd-servers=" + c.etcdURL(etcdClientPort), "--etcd-cafile=" + c.key("etcd-ca.crt"),
		"--etcd-certfile=" + c.key("etcd.crt"), "--etcd-keyfile=" + c.key("etcd.key"),
		"--client-ca-file=" + c.key("ca.crt"),
		"--tls-cert-file=" + c.key("apiserver.crt"), "--tls-private-key-file=" + c.key("apiserver.key"),
		"--kubelet-certificate-authority=" + c.key("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + c.key("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + c.key("apiserver-kubelet-client.key"),
		"--requestheader-client-ca-file=" + c.key("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.key("front-proxy-client.crt"), "--proxy-client-key-file=" + c.key("front-proxy-client.key"),
		// The machine has no kube-proxy: webhooks and aggregated APIs are called on the addresses of their pods.
		"--enable-aggregator-routing=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--service-cluster-ip-range=" + c.Plan.Services().String(),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.key("sa.pub"), "--service-account-signing-key-file=" + c.key("sa.key"),
		"--profiling=false",
	}
	if c.FastNodeDetection {
		args = append(args, "--default-not-ready-toleration-seconds=20", "--default-unreachable-toleration-seconds=20")
	}
	return c.program("kube-apiserver", args...)
}

func (c *Cluster) controllerManager() process.Program {
	args := []string{
		"--kubeconfig=" + c.path("kube-controller-manager.kubeconfig"),
		"--authentication-kubeconfig=" + c.path("kube-controller-manager.kubeconfig"),
		"--authorization-kubeconfig=" + c.path("kube-controller-manager.kubeconfig"),
		"--bind-address=" + c.Plan.Loopback().String(),
		"--use-service-account-credentials=true", "--leader-elect=false",
		"--service-account-private-key-file=" + c.key("sa.key"), "--root-ca-file=" + c.key("ca.crt"),
		"--cluster-signing-cert-file=" + c.key("ca.crt"), "--cluster-signing-key-file=" + c.key("ca.key"),
		"--profiling=false",
		// Its controllers start when each has got its account and token, which takes 5 s at the rate of its default.
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
	if c.FastNodeDetection {
		args = append(args, "--node-monitor-grace-period=14s", "--node-monitor-period=1s")
	}
	return c.program("kube-controller-manager", args...)
}

func (c *Cluster) scheduler() process.Program {
	return c.program("kube-scheduler",
		"--kubeconfig="+c.path("kube-scheduler.kubeconfig"),
		"--authentication-kubeconfig="+c.path("kube-scheduler.kubeconfig"),
		"--authorization-kubeconfig="+c.path("kube-scheduler.kubeconfig"),
		"--bind-address="+c.Plan.Loopback().String(),
		"--leader-elect=false", "--profiling=false",
	)
}

// ProvisionCommand is the hidden command of localkube that runs the provisioner: `localkube provision NAME`.
const ProvisionCommand = "provision"

func (c *Cluster) provisioner() process.Program { return c.own("provisioner", ProvisionCommand) }

// SuperviseCommand is the hidden command of localkube that runs the supervisor: `localkube supervise NAME`.
const SuperviseCommand = "supervise"

func (c *Cluster) supervisor() process.Program {
	p := c.own("supervisor", SuperviseCommand)
	p.Record = ""
	return p
}

// own is a program that is a hidden command of localkube.
func (c *Cluster) own(name, command string) process.Program {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	p := c.program(name)
	p.Args = []string{self, command, c.Name}
	return p
}

// Supervise restarts what ends by itself of the control plane of the cluster of that name, until ctx ends.
func Supervise(ctx context.Context, name string) error {
	programs := func() ([]process.Program, error) {
		c, err := Open(name)
		if err != nil {
			return nil, err
		}
		return c.supervised(), nil
	}
	(&process.Supervisor{Programs: programs, Out: os.Stdout}).Run(ctx)
	return nil
}

const (
	etcdClientPort = 2379
	etcdPeerPort   = 2380
)
