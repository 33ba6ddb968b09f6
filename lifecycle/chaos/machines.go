package chaos

import (
	"fmt"
	"strconv"
)

// What is touched outside of the API.
var (
	// Node is a machine with its kubelet.
	Node = Object{Kind: "Node", APIVersion: "v1", Scope: ScopeNode, Takes: PartPod}
	// APIServer is the control plane.
	APIServer = Object{Kind: "APIServer", Scope: ScopeNode}
	// Disk is the file system of a member's volume.
	Disk = Object{Kind: "Disk", Scope: ScopeNode}
	// Operator is the operator's pods.
	Operator = Object{Kind: "Operator", APIVersion: "v1", Scope: ScopeOperator}
)

// Details of VerbMachine.
const (
	MachineOff     = "Off"     // power off, and on again when it is undone
	MachineFreeze  = "Freeze"  // everything on the node stands still
	MachineCut     = "Cut"     // the node reaches nothing
	MachineBlind   = "Blind"   // the node reaches everything but the API server
	MachineCordon  = "Cordon"  // no pod is scheduled to the node
	MachineDrain   = "Drain"   // cordoned, and its pods of the instance evicted
	MachineAway    = "Away"    // the API server ends, and starts when it is undone
	MachineKill    = "Kill"    // the operator's processes are killed
	MachineNone    = "None"    // the operator is scaled to zero, and back when it is undone
	MachineTwo     = "Two"     // the leader stands still until another leads, and goes on
	MachineRestart = "Restart" // the operator's Deployment is restarted
	MachineDelete  = "Delete"  // the Node object is deleted, and created again when it is undone
	MachineOther   = "Other"   // the operator's Deployment runs another release, and its own again when it is undone
)

// MachineKillAfter begins the details of VerbMachine that have the operator killed right after a write has
// passed: the number of the write follows.
const MachineKillAfter = "KillAfter"

// killsAfter are the numbers of writes after which the operator is killed.
var killsAfter = []int{1, 2, 3, 5, 8}

// Details of VerbMachine for the API server, as the operator hears it.
const (
	APIThrottles    = "Throttles"    // every second answer is 429
	APIConflicts    = "Conflicts"    // every second write is answered with 409
	APIFails        = "Fails"        // every third answer is 500
	APILosesAnswers = "LosesAnswers" // every third write is done, and its answer lost
	APISlow         = "Slow"         // every answer takes two seconds more
	APIDropsWatches = "DropsWatches" // no watch lasts longer than two seconds
)

// Details of VerbMachine for the volume of a member.
const (
	DiskFull     = "Full"     // no space is left
	DiskHangs    = "Hangs"    // writes do not end
	DiskReadOnly = "ReadOnly" // writes are refused
	DiskSlow     = "Slow"     // writes wait for most of a second
)

// Pods is what happens to pods and their processes besides what [Generate] makes.
func Pods() Catalogue {
	pod := func(verb Verb, actor Actor, sentence string) Manipulation {
		m := on(Pod, verb, "", sentence)
		m.Actor = actor
		return m
	}
	force := pod(VerbForceDelete, ActorUser, "The user deletes a Pod without a grace period.")
	evict := pod(VerbEvict, ActorAdministrator, "A drain evicts a Pod, if the disruption budget allows that.")
	isolate := pod(VerbIsolate, ActorAdministrator, "A NetworkPolicy refuses all ingress to a Pod.")
	kill := pod(VerbKill, ActorMachine, "The kernel kills the process of a Pod, as when memory is short.")
	freeze := pod(VerbFreeze, ActorMachine, "The process of a Pod stands still.")
	force.Takes, evict.Takes = PartPod, PartPod
	isolate.Lasts, freeze.Lasts = true, true
	// A forced deletion is not safe: on a node that does not answer, the old pod may go on
	// writing to the volume that the new one has.
	evict.Safe, isolate.Safe = true, true
	every := force
	every.Name, every.All, every.Safe = force.Name+"-all", true, false
	every.Sentence = "The user deletes every Pod of the instance without a grace period."
	everyKill := kill
	everyKill.Name, everyKill.All = kill.Name+"-all", true
	everyKill.Sentence = "The kernel kills the process of every Pod of the instance."
	return Catalogue{force, every, evict, isolate, kill, everyKill, freeze}
}

// Machines is what happens to nodes and to the control plane.
func Machines() Catalogue {
	all := Catalogue{
		machine(Node, ActorMachine, MachineOff, "A node is powered off."),
		machine(Node, ActorMachine, MachineFreeze, "A node stands still."),
		machine(Node, ActorMachine, MachineCut, "A node is cut off from the network."),
		machine(Node, ActorMachine, MachineBlind, "A node does not reach the API server."),
		machine(Node, ActorAdministrator, MachineCordon, "The administrator cordons a node."),
		machine(Node, ActorAdministrator, MachineDrain, "The administrator drains a node."),
		machine(Node, ActorAdministrator, MachineDelete, "The administrator deletes a Node, whose machine goes on."),
		machine(APIServer, ActorMachine, MachineAway, "The API server is away."),
		machine(APIServer, ActorMachine, APIThrottles, "The API server answers half of the operator's requests with 429."),
		machine(APIServer, ActorMachine, APIConflicts, "The API server answers half of the operator's writes with 409."),
		machine(APIServer, ActorMachine, APIFails, "The API server answers a third of the operator's requests with 500."),
		machine(APIServer, ActorMachine, APILosesAnswers, "The operator does not hear that a third of its writes succeeded."),
		machine(APIServer, ActorMachine, APISlow, "Each answer of the API server to the operator takes two seconds more."),
		machine(APIServer, ActorMachine, APIDropsWatches, "The operator's watches end every two seconds."),
		machine(Disk, ActorMachine, DiskFull, "Another file fills the volume of a member."),
		machine(Disk, ActorMachine, DiskHangs, "The volume of a member accepts no write."),
		machine(Disk, ActorMachine, DiskReadOnly, "The volume of a member is read-only, and its process ends."),
		machine(Disk, ActorMachine, DiskSlow, "Each write to the volume of a member waits for most of a second."),
		machine(Operator, ActorMachine, MachineKill, "The operator is killed."),
		machine(Operator, ActorAdministrator, MachineNone, "The administrator scales the operator to zero."),
		machine(Operator, ActorMachine, MachineTwo, "Two operators act at once: the leader stands still until the Lease is another's, and goes on."),
		machine(Operator, ActorAdministrator, MachineRestart, "The administrator restarts the operator."),
		machine(Operator, ActorAdministrator, MachineOther, "The administrator installs another release of the operator, and returns to this one."),
	}
	for _, n := range killsAfter {
		all = append(all, machine(Operator, ActorMachine, MachineKillAfter+strconv.Itoa(n),
			fmt.Sprintf("The operator is killed each time that it has made %d writes, before it hears of the last.", n)))
	}
	for i := range all {
		all[i].Lasts = all[i].Detail != MachineKill && all[i].Detail != MachineRestart
	}
	return all
}

func machine(o Object, actor Actor, detail, sentence string) Manipulation {
	m := on(o, VerbMachine, detail, sentence)
	m.Name = Dashed(o.Kind) + "-" + Dashed(detail)
	if o.Kind == APIServer.Kind {
		m.Name = "apiserver-" + Dashed(detail)
	}
	m.Actor, m.Takes = actor, o.Takes
	if detail == MachineCordon || detail == MachineBlind || detail == MachineCut || detail == MachineFreeze {
		m.Takes = PartNone
	}
	return m
}
