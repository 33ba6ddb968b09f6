package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// proxied is the name of the Secret with the operator's kubeconfig, and of its volume.
const proxied = "chaos-proxy"

// kubeconfig is where the operator finds the proxy.
const kubeconfig = "/etc/" + proxied + "/kubeconfig"

// interpose has the operator reach the API server through the proxy. The return value takes that back.
func (a *arena) interpose(ctx context.Context) (func(), error) {
	before := &appsv1.Deployment{}
	if err := a.api.Get(ctx, client.ObjectKey{Namespace: operatorSpace, Name: "governor"}, before); err != nil {
		return nil, err
	}
	p, err := startProxy(a.connection)
	if err != nil {
		return nil, err
	}
	file, err := p.kubeconfig()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorSpace, Name: proxied}, Data: map[string][]byte{"kubeconfig": file}}
	if err := client.IgnoreNotFound(a.api.Delete(ctx, secret.DeepCopy())); err != nil {
		return nil, err
	}
	if err := a.api.Create(ctx, secret); err != nil {
		return nil, err
	}
	a.proxy = p
	undo := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = a.reconnect(ctx, nil)
		_ = a.rolledOut(ctx)
		_ = p.server.Close()
	}
	if err := a.reconnect(ctx, &before.Spec.Template.Spec.Containers[0]); err != nil {
		return undo, err
	}
	return undo, a.rolledOut(ctx)
}

// kubeconfig authenticates with the token of the pod's own ServiceAccount.
func (p *proxy) kubeconfig() ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: proxied,
		Contexts:       map[string]*clientcmdapi.Context{proxied: {Cluster: proxied, AuthInfo: proxied, Namespace: operatorSpace}},
		Clusters:       map[string]*clientcmdapi.Cluster{proxied: {Server: p.Address, CertificateAuthorityData: p.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{proxied: {TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token"}},
	})
}

// reconnect has the operator's container use the proxy, or the API server itself if there is no container.
func (a *arena) reconnect(ctx context.Context, c *corev1.Container) error {
	change := func(value any) map[string]any { return map[string]any{"$patch": "delete", "name": value} }
	container := map[string]any{
		"name": "governor", "env": []any{change("KUBECONFIG")},
		"volumeMounts": []any{map[string]any{"$patch": "delete", "mountPath": "/etc/" + proxied}},
	}
	volumes := []any{change(proxied)}
	if c != nil {
		container["env"] = []corev1.EnvVar{{Name: "KUBECONFIG", Value: kubeconfig}}
		container["volumeMounts"] = []corev1.VolumeMount{{Name: proxied, MountPath: "/etc/" + proxied, ReadOnly: true}}
		volumes = []any{map[string]any{"name": proxied, "secret": map[string]any{"secretName": proxied}}}
	}
	spec := map[string]any{"containers": []any{container}, "volumes": volumes}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	if err != nil {
		return err
	}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorSpace, Name: "governor"}}
	return a.api.Patch(ctx, operator, client.RawPatch(types.StrategicMergePatchType, patch))
}

// rolledOut waits until the operator's pods are those of its present template.
func (a *arena) rolledOut(ctx context.Context) error {
	return await(ctx, 2*time.Minute, time.Second, func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := a.api.Get(ctx, client.ObjectKey{Namespace: operatorSpace, Name: "governor"}, &d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < *d.Spec.Replicas || s.AvailableReplicas < *d.Spec.Replicas || s.Replicas > *d.Spec.Replicas {
			return fmt.Errorf("%d of %d operators are of the present template", s.UpdatedReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// hurtAPI disturbs what the operator hears from the API server.
func (v *adversary) hurtAPI(what chaos.Manipulation) (does.Done, error) {
	if v.proxy == nil {
		return does.Done{}, does.ErrNothing
	}
	v.proxy.Disturb(what.Detail)
	undo := func(context.Context) error { v.proxy.Disturb(""); return nil }
	return does.Done{Objects: []string{v.proxy.Address}, Undo: undo}, nil
}
