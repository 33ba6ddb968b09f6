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
)

const (
	namespace = "governor-demo"
	name      = "memcached-sample"
	manifest  = "examples/memcached.yaml"
)

// patience is how long a scene may take. The first one pulls images where there is a registry.
const patience = 3 * time.Minute

// scene is one thing that is done, and what must come of it.
type scene struct {
	title    string
	commands []string
	// shows is what to look at.
	shows string
	until func(view) bool
}

var scenes = []scene{
	{
		title:    "Declare three memcached servers",
		commands: []string{"kubectl create namespace " + namespace, "kubectl -n " + namespace + " apply -f " + manifest},
		until:    allAnswer(3),
	},
	{
		title:    "Scale to five by changing one number",
		commands: []string{"kubectl -n " + namespace + " scale memcached " + name + " --replicas=5"},
		until:    allAnswer(5),
	},
	{
		title: "Break it: delete two pods, and change the Deployment behind the operator's back",
		commands: []string{
			"kubectl -n " + namespace + " set image deployment/" + name + " memcached=example.com/broken:1",
			"kubectl -n " + namespace + " delete pod --wait=false FIRST SECOND",
		},
		shows: "the image is repaired from the declaration, the pods come back",
		until: repaired(5),
	},
	{
		title:    "Upgrade by changing one field",
		commands: []string{"kubectl -n " + namespace + " patch memcached " + name + ` --type=merge -p {"spec":{"version":"1.6.38"}}`},
		until:    allRun("1.6.38", 5),
	},
}

func main() {
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
	for _, s := range scenes {
		if err := stage.play(ctx, s); err != nil {
			return err
		}
	}
	fmt.Printf("\nAll of it took %d s and happened as declared.\n\n%s", int(time.Since(start).Seconds()), next)
	return nil
}

const next = `Try next:
  kubectl -n ` + namespace + ` get memcached -o wide
  kubectl -n ` + namespace + ` describe memcached ` + name + `
  kubectl -n ` + namespace + ` edit memcached ` + name + `
  kubectl explain memcached.spec
  kubectl -n ` + namespace + ` delete memcached ` + name + `
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
	return kubectlQuietly(ctx, strings.Fields(command)[1:]...)
}

func kubectlQuietly(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("kubectl is not on the PATH; `make demo` puts one there")
	}
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
