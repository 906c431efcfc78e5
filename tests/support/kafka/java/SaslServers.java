import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.security.Key;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.authenticator.CredentialCache;
import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.oauthbearer.JwtValidatorException;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer;
import org.apache.kafka.common.security.oauthbearer.internals.secured.CloseableVerificationKeyResolver;
import org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramMessages;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.jose4j.jws.JsonWebSignature;
import org.jose4j.jwx.JsonWebStructure;
import org.jose4j.keys.HmacKey;

/**
 * Whom Kafka's own SASL servers authenticate. Reads lines `MECHANISM HEX...`, the messages of a client in hex, and
 * prints a line for each: `NAME hex`, `OWNER hex` (of a delegation token), or `REJECTED why`.
 *
 * <p>Every password is right, every user and delegation token exists (the owner of ID is owner-of-ID), and of SCRAM
 * only the client's first message is given. SIGNED is OAUTHBEARER with tokens signed by HS256 and the key in the
 * first argument; OAUTHBEARER takes unsecured ones.
 */
public class SaslServers {
    private static final HexFormat HEX = HexFormat.of();
    private static final byte[] SALT = "salt".getBytes(StandardCharsets.UTF_8);
    private static final int ITERATIONS = 4096;

    private final Key key;
    private final ScramMechanism scram;
    private final ScramFormatter formatter;
    private final byte[] saltedPassword;
    private final ScramCredential credential;

    private SaslServers(byte[] key) throws Exception {
        this.key = new HmacKey(key);
        scram = ScramMechanism.SCRAM_SHA_256;
        formatter = new ScramFormatter(scram);
        saltedPassword = formatter.saltedPassword("secret", SALT, ITERATIONS);
        credential = formatter.generateCredential(SALT, saltedPassword, ITERATIONS);
    }

    public static void main(String[] arguments) throws Exception {
        SaslServers servers = new SaslServers(HEX.parseHex(arguments[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            byte[][] messages = new byte[words.length - 1][];
            for (int place = 1; place < words.length; place++)
                messages[place - 1] = HEX.parseHex(words[place]);
            out.println(servers.whom(words[0], messages));
        }
        out.flush();
    }

    private String whom(String mechanism, byte[][] messages) {
        try {
            SaslServer server = server(mechanism);
            byte[] challenge = new byte[0];
            for (byte[] message : messages)
                challenge = server.evaluateResponse(message);
            if (server instanceof ScramSaslServer)
                server.evaluateResponse(scramFinal(messages[0], challenge));
            String name = HEX.formatHex(server.getAuthorizationID().getBytes(StandardCharsets.UTF_8));
            boolean owner = server instanceof ScramSaslServer
                && Boolean.parseBoolean((String) server.getNegotiatedProperty("tokenauth"));
            return (owner ? "OWNER " : "NAME ") + name;
        } catch (Exception | StackOverflowError error) {
            return "REJECTED " + error.toString().replaceAll("[^ -~]", "?");
        }
    }

    private SaslServer server(String mechanism) throws Exception {
        switch (mechanism) {
            case "PLAIN":
                return new PlainSaslServer(new AnyPassword());
            case "OAUTHBEARER":
                OAuthBearerUnsecuredValidatorCallbackHandler unsecured =
                    new OAuthBearerUnsecuredValidatorCallbackHandler();
                unsecured.configure(Map.of(), mechanism, List.of(entry(OAuthBearerLoginModule.class)));
                return new OAuthBearerSaslServer(unsecured);
            case "SIGNED":
                return new OAuthBearerSaslServer(new Signed(key));
            default:
                return new ScramSaslServer(scram, Map.of(), new AnyUser());
        }
    }

    private static AppConfigurationEntry entry(Class<?> module) {
        return new AppConfigurationEntry(
            module.getName(), AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of());
    }

    /** The client's final message, made from the first as Kafka parses it. */
    private byte[] scramFinal(byte[] first, byte[] challenge) throws Exception {
        ScramMessages.ClientFirstMessage clientFirst = new ScramMessages.ClientFirstMessage(first);
        ScramMessages.ServerFirstMessage serverFirst = new ScramMessages.ServerFirstMessage(challenge);
        byte[] binding = clientFirst.gs2Header().getBytes(StandardCharsets.UTF_8);
        ScramMessages.ClientFinalMessage last =
            new ScramMessages.ClientFinalMessage(binding, serverFirst.nonce());
        last.proof(formatter.clientProof(saltedPassword, clientFirst, serverFirst, last));
        return last.toBytes();
    }

    private static class AnyPassword extends PlainServerCallbackHandler {
        @Override
        protected boolean authenticate(String username, char[] password) {
            return true;
        }
    }

    /** Kafka's own handler, with caches that know whoever is asked for. */
    private class AnyUser implements AuthenticateCallbackHandler {
        private final CredentialCache.Cache<ScramCredential> users =
            new CredentialCache().createCache(scram.mechanismName(), ScramCredential.class);
        private final DelegationTokenCache tokens = new DelegationTokenCache(ScramMechanism.mechanismNames());
        private final ScramServerCallbackHandler handler = new ScramServerCallbackHandler(users, tokens);

        AnyUser() {
            handler.configure(Map.of(), scram.mechanismName(), List.of());
        }

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (callback instanceof NameCallback name) {
                    String asked = name.getDefaultName();
                    KafkaPrincipal owner = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "owner-of-" + asked);
                    users.put(asked, credential);
                    tokens.addToken(
                        asked, new TokenInformation(asked, owner, List.of(), 0, Long.MAX_VALUE, Long.MAX_VALUE));
                    tokens.credentialCache(scram.mechanismName()).put(asked, credential);
                }
            }
            handler.handle(callbacks);
        }

        @Override
        public void configure(
                Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {}

        @Override
        public void close() {}
    }

    /** What OAuthBearerValidatorCallbackHandler does, with a key of our own instead of a file or a server. */
    private static class Signed implements AuthenticateCallbackHandler {
        private final BrokerJwtValidator validator;

        Signed(Key key) throws Exception {
            Constructor<BrokerJwtValidator> constructor =
                BrokerJwtValidator.class.getDeclaredConstructor(CloseableVerificationKeyResolver.class);
            constructor.setAccessible(true);
            validator = constructor.newInstance(new OneKey(key));
            Map<String, Object> configs = new HashMap<>();
            configs.put("sasl.oauthbearer.clock.skew.seconds", 30);
            configs.put("sasl.oauthbearer.expected.audience", List.of());
            configs.put("sasl.oauthbearer.scope.claim.name", "scope");
            configs.put("sasl.oauthbearer.sub.claim.name", "sub");
            validator.configure(configs, "OAUTHBEARER", List.of(entry(OAuthBearerLoginModule.class)));
        }

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (!(callback instanceof OAuthBearerValidatorCallback asked))
                    throw new UnsupportedCallbackException(callback);
                try {
                    asked.token(validator.validate(asked.tokenValue()));
                } catch (JwtValidatorException error) {
                    asked.error("invalid_token", null, null);
                }
            }
        }

        @Override
        public void configure(
                Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {}

        @Override
        public void close() {}
    }

    private record OneKey(Key key) implements CloseableVerificationKeyResolver {
        @Override
        public Key resolveKey(JsonWebSignature signature, List<JsonWebStructure> nesting) {
            return key;
        }
    }
}
