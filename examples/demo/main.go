// Command demo shows Governor at work on the cluster of the current kubeconfig: it installs the operator, declares an
// application, breaks it, and shows live what happens and why. It fails if anything does not happen as it should.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/governor-dev/governor/apps/etcd"
)

const (
	namespace = "governor-demo"
	name      = "etcd-sample"
	manifest  = "examples/etcd.yaml"
)

// patience is how long a scene may take. The first one pulls images where there is a registry.
const patience = 3 * time.Minute

// scene is one thing that is done, and what must come of it.
type scene struct {
	title    string
	commands []string
	// shows is what to look at.
	shows string
	until func(before, now view) bool
	// afterwards are commands that tell about it.
	afterwards []string
}

var scenes = []scene{
	{
		title:    "Declare an etcd cluster of three members, encrypted, each with a volume of its own",
		commands: []string{"kubectl create namespace " + namespace, "kubectl -n " + namespace + " apply -f " + manifest},
		until:    serve(3),
	},
	{
		title: "Scale to five by changing one number, and look before you do",
		commands: []string{
			"kubectl governor plan etcdcluster " + name + " -n " + namespace + " --set spec.size=5",
			"kubectl -n " + namespace + " scale etcdcluster " + name + " --replicas=5",
		},
		shows: "members join as learners, and get a vote when they have caught up",
		until: serve(5),
	},
	{
		title:    "Back to three",
		commands: []string{"kubectl -n " + namespace + " scale etcdcluster " + name + " --replicas=3"},
		until:    serve(3),
	},
	{
		title: "Break it: kill a member that leads, and its disk with it",
		commands: []string{
			"kubectl -n " + namespace + " delete pvc -l " + etcd.LabelMember + "=LEADER --wait=false",
			"kubectl -n " + namespace + " delete pod LEADER-0 --grace-period=0 --force",
		},
		shows:      "it has lost its identity with its data: Governor removes it from the cluster and adds a new member",
		until:      replaced(3),
		afterwards: []string{"kubectl governor why etcdcluster " + name + " -n " + namespace},
	},
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	start := time.Now()
	fmt.Println("Install Governor: one file, one Deployment")
	if err := install(ctx); err != nil {
		return err
	}
	stage, err := open(ctx)
	if err != nil {
		return err
	}
	if err := kubectlQuietly(ctx, "delete", "namespace", namespace, "--ignore-not-found"); err != nil {
		return err
	}
	for i, s := range scenes {
		if err := stage.play(ctx, s); err != nil {
			return err
		}
		if i == 0 {
			if err := stage.write(ctx); err != nil {
				return err
			}
		}
	}
	if err := stage.prove(ctx); err != nil {
		return err
	}
	fmt.Printf("\nAll of it took %d s and happened as declared.\n\n%s", int(time.Since(start).Seconds()), next)
	return nil
}

const next = `Try next:
  kubectl -n ` + namespace + ` get etcdclusters -o wide
  kubectl -n ` + namespace + ` describe etcdcluster ` + name + `
  kubectl -n ` + namespace + ` patch etcdcluster ` + name + ` --type=merge -p '{"spec":{"version":"3.7"}}'
  kubectl explain etcdcluster.spec
  kubectl -n ` + namespace + ` delete etcdcluster ` + name + `
Remove it all:
  kubectl delete namespace ` + namespace + `
  kubectl delete -f dist/install.yaml     # with it go the custom resources: keep the CRDs to keep those
`

func install(ctx context.Context) error {
	for _, command := range []string{
		"kubectl apply --server-side -f dist/install.yaml",
		"kubectl -n governor-system rollout status deployment/governor --timeout=120s",
	} {
		if err := showAndRun(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// showAndRun runs exactly what it shows, so that the reader can type it too.
func showAndRun(ctx context.Context, command string) error {
	fmt.Println("  $ " + command)
	words := strings.Fields(command)[1:]
	said, err := kubectl(ctx, words...)
	for line := range strings.Lines(said) {
		if words[0] == "governor" || strings.HasPrefix(line, "Warning: Governor") {
			fmt.Print("    ", line)
		}
	}
	return err
}

func kubectlQuietly(ctx context.Context, args ...string) error {
	_, err := kubectl(ctx, args...)
	return err
}

func kubectl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("kubectl is not on the PATH; `make demo` puts one there")
	}
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
