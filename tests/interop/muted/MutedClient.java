import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client of client.py, with the same arguments and the same output. */
public class MutedClient {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("client.id", args[2]);
        String topic = args[3];
        int large = Integer.parseInt(args[4]);
        int small = Integer.parseInt(args[5]);
        if (args[0].equals("produce")) produce(settings, topic, large, small);
        else consume(settings, topic, args[2], small);
        say("done");
        System.in.read();
        Runtime.getRuntime().halt(0);
    }

    private static void produce(Properties settings, String topic, int large, int small) throws Exception {
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        CountDownLatch left = new CountDownLatch(small + 1);
        send(producer, topic, 0, large, left);
        producer.flush();
        for (int number = 1; number <= small; number++) {
            send(producer, topic, number, 100, left);
            Thread.sleep(500);
        }
        left.await();
    }

    private static void send(
            KafkaProducer<byte[], byte[]> producer, String topic, int number, int size, CountDownLatch left) {
        byte[] value = new byte[size];
        byte[] digits = String.format("%08d", number).getBytes();
        System.arraycopy(digits, 0, value, 0, digits.length);
        producer.send(new ProducerRecord<>(topic, 0, null, value), (metadata, error) -> {
            say(error == null ? "acked " + number : "failed " + number + " " + error.getClass().getSimpleName());
            left.countDown();
        });
    }

    private static void consume(Properties settings, String topic, String group, int small) {
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                say("assigned");
            }
        });
        int last = -1;
        while (last < small) {
            for (var record : consumer.poll(Duration.ofSeconds(1))) {
                last = Integer.parseInt(new String(record.value(), 0, 8));
                say("got " + last);
            }
        }
    }

    private static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }
}
