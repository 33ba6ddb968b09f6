package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
)

// operatorUser is the user name of the operator.
const operatorUser = "governor"

// auditPolicy logs one line per request, before the response is sent. It audits all users,
// so that the cost is the same for the plain calls and for the operator.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata}
`

// api is a real API server with its etcd, without controllers and kubelets.
type api struct {
	client.Client

	config     *rest.Config
	env        *envtest.Environment
	folder     string
	kubeconfig string
	auditLog   *auditLog
}

func startAPI(crds string) (*api, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd")
	}
	progress("starting the API server")
	folder, err := os.MkdirTemp("", "governor-bench-")
	if err != nil {
		return nil, err
	}
	a := &api{folder: folder, auditLog: &auditLog{path: filepath.Join(folder, "audit.log")}}
	if err := a.start(crds); err != nil {
		a.stop()
		return nil, fmt.Errorf("cannot start the API server: %w", err)
	}
	return a, nil
}

func (a *api) start(crds string) error {
	policy := filepath.Join(a.folder, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	a.env = &envtest.Environment{CRDDirectoryPaths: []string{crds}, ErrorIfCRDPathMissing: true}
	a.env.ControlPlane.GetAPIServer().Configure().
		Append("disable-admission-plugins", "ServiceAccount").
		Append("audit-policy-file", policy).
		Append("audit-log-path", a.auditLog.path).
		Append("audit-log-maxsize", "10000") // megabytes: rotation would lose requests
	config, err := a.env.Start()
	if err != nil {
		return err
	}
	config.QPS = -1
	return a.connect(config)
}

func (a *api) connect(config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), cachev1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	a.config, a.Client = config, c
	return a.writeKubeconfig()
}

// writeKubeconfig writes the operator's kubeconfig. Its user is in the same group as the
// user of the plain calls, so that API priority and fairness treats both the same.
func (a *api) writeKubeconfig() error {
	user, err := a.env.AddUser(envtest.User{Name: operatorUser, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	raw, err := user.KubeConfig()
	if err != nil {
		return err
	}
	a.kubeconfig = filepath.Join(a.folder, "kubeconfig")
	return os.WriteFile(a.kubeconfig, raw, 0o600)
}

func (a *api) stop() {
	if a.env != nil {
		_ = a.env.Stop()
	}
	_ = os.RemoveAll(a.folder)
}

func (a *api) newNamespace(ctx context.Context, name string) error {
	return a.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// clear deletes the objects of one measurement, so that the next one starts with the same
// API server.
func (a *api) clear(ctx context.Context, namespace string) error {
	var errs []error
	for _, kind := range append(children(), &cachev1.Memcached{}, &corev1.Pod{}, &corev1.Event{}) {
		errs = append(errs, a.DeleteAllOf(ctx, kind, client.InNamespace(namespace)))
	}
	return errors.Join(errs...)
}
