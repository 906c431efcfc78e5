// client produce BOOTSTRAP CLIENT_ID TOPIC               lines "KEY VALUE" from standard input
// client consume BOOTSTRAP CLIENT_ID TOPIC GROUP COUNT   lines "PARTITION OFFSET KEY VALUE"
// To standard error, a line "throttled MILLISECONDS" whenever it is told to wait.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type throttles struct{}

func (throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, wait time.Duration, _ bool) {
	log.Print("throttled ", wait.Milliseconds())
}

func main() {
	log.SetFlags(0)
	job, bootstrap, clientID, topic := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.ClientID(clientID),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.WithHooks(throttles{}),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	if job == "produce" {
		produce(open(options))
	} else {
		count, err := strconv.Atoi(os.Args[6])
		check(err)
		group := []kgo.Opt{
			kgo.ConsumerGroup(os.Args[5]),
			kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		}
		consume(open(append(options, group...)), count)
	}
}

func open(options []kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(options...)
	check(err)
	return client
}

func produce(client *kgo.Client) {
	defer client.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), " ")
		record := &kgo.Record{Key: []byte(key), Value: []byte(value)}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { check(err) })
	}
	check(lines.Err())
	check(client.Flush(context.Background()))
}

func consume(client *kgo.Client, left int) {
	defer client.Close()
	out := bufio.NewWriter(os.Stdout)
	for left > 0 {
		fetches := client.PollFetches(context.Background())
		for _, failure := range fetches.Errors() {
			check(failure.Err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Fprintln(out, record.Partition, record.Offset, string(record.Key), string(record.Value))
			left--
		})
		check(out.Flush())
	}
	check(client.CommitUncommittedOffsets(context.Background()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
