package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// onlyFriends lets pods with the label friend reach the web pods, and no others.
const onlyFriends = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: only-friends}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {friend: "true"}}}], ports: [{port: 8080}]}]
`

func testNetworkPolicy(t *testing.T, u user) {
	pods := strings.Fields(u.field(t, "pods", "{.items[*].metadata.name}", "-l", "app=web"))
	addresses := strings.Fields(u.field(t, "pods", "{.items[*].status.podIP}", "-l", "app=web"))
	u.kubectl(t, "label", "pod", pods[0], "friend=true")
	u.apply(t, onlyFriends)
	for i, from := range pods[:2] {
		for j, to := range addresses {
			if i != j { // what a pod sends to itself does not leave it
				u.reaches(t, from, to, i == 0)
			}
		}
	}
	u.kubectl(t, "rollout", "status", "daemonset/web", "--timeout=1s") // the kubelets' probes pass
	u.kubectl(t, "delete", "networkpolicy", "only-friends")
	u.reaches(t, pods[1], addresses[2], true)
}

func (u user) reaches(t *testing.T, pod, address string, want bool) {
	t.Helper()
	eventually(t, 20*time.Second, "whether "+pod+" reaches "+address, func() error {
		_, err := u.tryKubectl("exec", pod, "--", "timeout", "2", "wget", "-q", "-O", "-", "http://"+address+":8080/")
		switch {
		case want:
			return err
		case err == nil:
			return errors.New("it is reached")
		}
		return nil
	})
}
