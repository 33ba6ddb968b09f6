package etcd_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// An object that cannot be applied delays only the steps that start a pod which reads it.
func TestStepsDependOnObjectsOfTheirPod(t *testing.T) {
	for name, c := range map[string]struct {
		step, kind, object string
		want               bool
	}{
		"OwnConfigMap":   {etcd.StartMember, "ConfigMap", "e-3-bootstrap", true},
		"OwnSecret":      {etcd.Restart, "Secret", "e-3-server-tls", true},
		"OtherConfigMap": {etcd.StartMember, "ConfigMap", "e-13-bootstrap", false},
		"Authority":      {etcd.StartMember, "Secret", "e-ca", true},
		"Service":        {etcd.StartMember, "Service", "e-client", false},
		"Removal":        {etcd.RemoveMember, "ConfigMap", "e-3-bootstrap", false},
		"Learner":        {etcd.AddLearner, "Secret", "e-0-server-tls", false},
		"Beginning":      {etcd.FormCluster, "Service", "e", true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.object}}
			if got := (etcd.Planner{}).DependsOn(wanted(3), lifecycle.Step{Name: c.step, Target: "e-3"}, c.kind, obj); got != c.want {
				t.Errorf("%s e-3 depends on %s %s: %t, want %t", c.step, c.kind, c.object, got, c.want)
			}
		})
	}
}
