package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/test/consistencyclient"
)

// answerWithin is the timeout for a member's answer.
const answerWithin = 2 * time.Second

// clients is the configuration of a TLS client with the newest known certificate. It does not
// verify the members' certificates: their data identifies them.
func (s *subject) clients() *tls.Config {
	if !s.layout.tls() {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.certificate() },
	}
}

func (s *subject) certificate() (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	now, name := &corev1.Secret{}, instanceName+"-client-tls"
	if s.layout.has(ownTLS) {
		name = ownClient
	}
	err := s.api.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: name}, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if _, err = consistencyclient.TLSConfig(now, ""); err == nil {
			s.keys = now
		}
	}
	if s.keys == nil {
		return nil, fmt.Errorf("no client certificate was ever seen: %w", err)
	}
	pair, err := tls.X509KeyPair(s.keys.Data[corev1.TLSCertKey], s.keys.Data[corev1.TLSPrivateKeyKey])
	return &pair, err
}

// addresses are those of the pods that may answer.
func (s *subject) addresses(ctx context.Context) ([]string, error) {
	var all []string
	for _, p := range s.members(ctx) {
		if p.Status.PodIP != "" {
			all = append(all, address(p))
		}
	}
	return all, nil
}

func address(p corev1.Pod) string { return net.JoinHostPort(p.Status.PodIP, "2379") }

func (s *subject) dial(address string) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if config := s.clients(); config != nil {
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry())
}

// answer is the status of the etcd in a pod.
type answer struct {
	pod    corev1.Pod
	status *pb.StatusResponse
	err    error
}

// ask queries all pods concurrently.
func (s *subject) ask(ctx context.Context) []answer {
	pods := s.members(ctx)
	all := make([]answer, len(pods))
	done := make(chan int)
	for i, p := range pods {
		go func() {
			all[i] = answer{pod: p}
			all[i].status, all[i].err = s.statusOf(ctx, p)
			done <- i
		}()
	}
	for range pods {
		<-done
	}
	return all
}

func (s *subject) statusOf(ctx context.Context, p corev1.Pod) (*pb.StatusResponse, error) {
	if p.Status.PodIP == "" {
		return nil, fmt.Errorf("%s has no address", p.Name)
	}
	var answer *pb.StatusResponse
	err := s.with(ctx, address(p), func(ctx context.Context, line *grpc.ClientConn) (err error) {
		answer, err = pb.NewMaintenanceClient(line).Status(ctx, &pb.StatusRequest{})
		return err
	})
	return answer, err
}

// with opens a connection, calls the function, and closes the connection.
func (s *subject) with(ctx context.Context, address string, do func(context.Context, *grpc.ClientConn) error) error {
	line, err := s.dial(address)
	if err != nil {
		return err
	}
	defer line.Close()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return do(ctx, line)
}

// list is the linearizable member list, from the first member that returns it.
func (s *subject) list(ctx context.Context) ([]*pb.Member, error) {
	addresses, _ := s.addresses(ctx)
	err := fmt.Errorf("no pod has an address")
	for _, a := range addresses {
		var answer *pb.MemberListResponse
		err = s.with(ctx, a, func(ctx context.Context, line *grpc.ClientConn) (err error) {
			answer, err = pb.NewClusterClient(line).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
			return err
		})
		if err == nil {
			return answer.Members, nil
		}
	}
	return nil, err
}
