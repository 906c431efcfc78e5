// client.js produce BOOTSTRAP CLIENT_ID TOPIC               lines "KEY VALUE" from standard input
// client.js consume BOOTSTRAP CLIENT_ID TOPIC GROUP COUNT   lines "PARTITION OFFSET KEY VALUE"
// To standard error, a line "throttled MILLISECONDS" whenever it is told to wait.

const readline = require('readline')
const { Kafka, Partitioners, logLevel } = require('kafkajs')

const BATCH = 256
const [job, bootstrap, clientId, topic, groupId, count] = process.argv.slice(2)

// KafkaJS tells of a wait in its log only.
const listen = () => ({ namespace, level, log }) => {
  const wait = /^Client side throttling in effect for (\d+)ms/.exec(log.message)
  if (wait) {
    console.error(`throttled ${wait[1]}`)
  } else if (level <= logLevel.WARN) {
    console.error(`${namespace}: ${log.message}`, log.error || '')
  }
}

const kafka = new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.DEBUG, logCreator: listen })

async function produce() {
  const producer = kafka.producer({ idempotent: true, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  let messages = []
  const send = async () => {
    if (messages.length) await producer.send({ topic, messages })
    messages = []
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const space = line.indexOf(' ')
    messages.push({ key: line.slice(0, space), value: line.slice(space + 1) })
    if (messages.length === BATCH) await send()
  }
  await send()
  await producer.disconnect()
}

async function consume() {
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let left = Number(count)
  await new Promise((done, failed) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || failed(payload.error))
    const eachMessage = async ({ partition, message }) => {
      console.log(`${partition} ${message.offset} ${message.key} ${message.value}`)
      left -= 1
      if (left === 0) done()
    }
    consumer.run({ eachMessage }).catch(failed)
  })
  await consumer.disconnect()
}

const main = job === 'produce' ? produce : consume
main().catch((error) => {
  console.error(error)
  process.exit(1)
})
