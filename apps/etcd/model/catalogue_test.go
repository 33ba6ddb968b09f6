package model_test

import (
	"strings"
	"testing"

	etcdchaos "github.com/governor-dev/governor/apps/etcd/chaos"
	"github.com/governor-dev/governor/apps/etcd/model"
)

// notModelled explains why the model lacks a fault, by prefixes of names. The adversary performs
// all of them on a real cluster.
var notModelled = map[string]string{
	"service-":               "the model has no Services: they are resources that the engine applies",
	"endpointslice-":         "the model has no EndpointSlices: no rule reads them",
	"configmap-":             "the model applies every bootstrap ConfigMap in each reconcile, as the engine does: edits and deletions are reverted before a rule observes them",
	"secret-":                "the model has no certificates: worlds with swapped authorities are in the tables of TestNext",
	"poddisruptionbudget-":   "the engine reverts what others do to the budget before a rule observes it",
	"networkpolicy-":         "the model's network is cut by faults of its own",
	"controllerrevision-":    "the model has no ControllerRevisions: no rule reads them",
	"lease-":                 "the simulator runs one operator; two of them are stale caches and conflicts, which it has",
	"operator-":              "the simulator crashes the operator before any effect, and shows it stale caches",
	"apiserver-":             "the simulator has outages of the API server",
	"disk-":                  "a member on a full or hanging disk is a silent one in the model, which has no disks",
	"etcdcluster-edit-":      "the simulator's user edits the spec",
	"legacy-etcdcluster-":    "the simulator's user edits the spec; the conversion is fuzzed",
	"etcdcluster-replace-":   "the conversion is fuzzed",
	"etcdcluster-strip-":     "no rule reads the labels of the custom resource",
	"etcdcluster-add-":       "the simulator's deletion ends with its own work",
	"etcdcluster-status-mem": "the simulator's user removes it from the status",
	"etcdcluster-status-con": "no rule reads conditions",
	"etcd-raise-":            "the model's etcd has no alarms: worlds with alarms are in the tables of TestNext",
	"etcd-defragment":        "the model's etcd has no files",
	"etcd-compact":           "the model's etcd keeps only the length of its log",
	"etcd-snapshot":          "it changes nothing",
	"etcd-add-user":          "the model's etcd has no users",
	"etcd-enable-auth":       "the model's etcd has no users",
	"etcd-grant-lease":       "the model's etcd keeps only the length of its log",
	"etcd-disarm-alarms":     "the model's etcd has no alarms: worlds with alarms are in the tables of TestNext",
	"etcd-steal-url":         "the model's etcd refuses a URL that is taken, as the real one does",
	"etcd-disable-auth":      "the model's etcd has no users",
	"etcd-enable-downgrade":  "the model's etcd has no downgrades: the operator makes none",
	"etcd-cancel-downgrade":  "the model's etcd has no downgrades: the operator makes none",
	"node-delete":            "the machine goes on, and a pod that is deleted is a fault of its own",
	"etcd-promote-learner":   "the model promotes learners as the operator does",
	"pod-edit-image":         "the model's pods have the image of their StatefulSet",
	"pod-strip-owners":       "it orphans the pod, as the deletion of its StatefulSet with --cascade=orphan does",
	"persistentvolumeclaim-": "the model's volumes have no labels, owners or finalizers of others",
	"statefulset-strip-":     "the model's StatefulSets have no labels and owners",
	"statefulset-apply-":     "it is drift of a template, as an edited image is",
	"pod-apply-":             "the model's pods have no fields that a client can set",
	"etcdcluster-apply-":     "the simulator's user edits the spec",
	"etcdcluster-client-":    "the simulator's user edits the spec",
	"etcdcluster-delete-":    "the simulator's user deletes the cluster, and its objects go with it",
	"etcdcluster-recreate-":  "the simulator's user deletes the cluster, and its objects go with it",
	"statefulset-edit-":      "it is drift of a template, as an edited image is",
}

// TestEveryManipulationIsAFaultOrHasAReason checks that the simulator covers the adversary's
// catalogue.
func TestEveryManipulationIsAFaultOrHasAReason(t *testing.T) {
	used, modelled := map[string]bool{}, 0
	for _, m := range etcdchaos.Catalogue() {
		if model.Modelled(m.Name) {
			modelled++
			continue
		}
		reason := ""
		for beginning := range notModelled {
			if strings.HasPrefix(m.Name, beginning) && len(beginning) > len(reason) {
				reason = beginning
			}
		}
		if used[reason] = true; reason == "" {
			t.Errorf("%s is no fault of the model, and nothing says why", m.Name)
		}
	}
	for beginning := range notModelled {
		if !used[beginning] {
			t.Errorf("nothing in the catalogue begins with %q", beginning)
		}
	}
	t.Logf("%d manipulations are faults of the model", modelled)
}

// Every name that a fault is registered under is in the catalogue.
func TestFaultsAreInTheCatalogue(t *testing.T) {
	all := etcdchaos.Catalogue()
	for _, name := range model.FaultNames() {
		if _, ok := all.Named(name); !ok {
			t.Errorf("the catalogue has no manipulation %q", name)
		}
	}
}
