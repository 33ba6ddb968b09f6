package storage

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

const adminToken = "admin"

// startAPIServer runs etcd and kube-apiserver from KUBEBUILDER_ASSETS for the
// time of the test. It returns a client for an administrator, and a kubeconfig
// for User, whom the administrator impersonates.
func startAPIServer(t *testing.T) (kubernetes.Interface, string) {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: it names the folder with etcd and kube-apiserver")
	}
	folder, etcd, peer, port := t.TempDir(), freePort(t), freePort(t), freePort(t)
	startProgram(t, filepath.Join(assets, "etcd"),
		"--data-dir", filepath.Join(folder, "etcd"),
		"--listen-client-urls", etcd.url("http"), "--advertise-client-urls", etcd.url("http"),
		"--listen-peer-urls", peer.url("http"), "--initial-advertise-peer-urls", peer.url("http"),
		"--initial-cluster", "default="+peer.url("http"))
	content, err := keyutil.MakeEllipticPrivateKeyPEM()
	check(t, err)
	key := writeFile(t, folder, "key.pem", content)
	startProgram(t, filepath.Join(assets, "kube-apiserver"),
		"--etcd-servers", etcd.url("http"),
		"--cert-dir", folder, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--token-auth-file", writeFile(t, folder, "tokens", []byte(adminToken+`,admin,admin,"system:masters"`)),
		"--authorization-mode", "RBAC",
		"--service-account-issuer", "https://test", "--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-cluster-ip-range", "10.0.0.0/24",
		// There is no controller manager to take protecting finalizers off.
		"--disable-admission-plugins", "ServiceAccount,StorageObjectInUseProtection")

	admin, err := newClient(writeKubeconfig(t, folder, "admin", port, ""))
	check(t, err)
	eventually(t, func() error {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
	return admin, writeKubeconfig(t, folder, "provisioner", port, User)
}

func startProgram(t *testing.T, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(program)))
	check(t, err)
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	check(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		log.Close()
		if content, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s ended with:\n%s", program, content[max(0, len(content)-3000):])
		}
	})
}

type port int

func (p port) url(scheme string) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, p) }

func freePort(t *testing.T) port {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return port(listener.Addr().(*net.TCPAddr).Port)
}

func writeFile(t *testing.T, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	check(t, os.WriteFile(path, content, 0o600))
	return path
}

func writeKubeconfig(t *testing.T, folder, name string, port port, as string) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters[""] = &api.Cluster{Server: port.url("https"), InsecureSkipTLSVerify: true}
	config.AuthInfos[""] = &api.AuthInfo{Token: adminToken, Impersonate: as}
	config.Contexts[name] = &api.Context{}
	config.CurrentContext = name
	path := filepath.Join(folder, name+".kubeconfig")
	check(t, clientcmd.WriteToFile(*config, path))
	return path
}
