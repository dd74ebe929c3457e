CREATE OR REPLACE PROCEDURE tpcc_payment(
    p_w_id int, p_d_id int, p_c_w_id int, p_c_d_id int, p_amount numeric, INOUT p_c_id int, INOUT p_c_last text,
    INOUT p_w_street_1 text, INOUT p_w_street_2 text, INOUT p_w_city text, INOUT p_w_state text, INOUT p_w_zip text,
    INOUT p_d_street_1 text, INOUT p_d_street_2 text, INOUT p_d_city text, INOUT p_d_state text, INOUT p_d_zip text,
    INOUT p_c_first text, INOUT p_c_middle text, INOUT p_c_street_1 text, INOUT p_c_street_2 text, INOUT p_c_city text,
    INOUT p_c_state text, INOUT p_c_zip text, INOUT p_c_phone text, INOUT p_c_since timestamp, INOUT p_c_credit text,
    INOUT p_c_credit_lim numeric, INOUT p_c_discount numeric, INOUT p_c_balance numeric, INOUT p_c_data text
) LANGUAGE plpgsql AS $$
DECLARE
    v_w_name text;
    v_d_name text;
    v_c_ids int[];
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w_id
        RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip
        INTO STRICT v_w_name, p_w_street_1, p_w_street_2, p_w_city, p_w_state, p_w_zip;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w_id AND d_id = p_d_id
        RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip
        INTO STRICT v_d_name, p_d_street_1, p_d_street_2, p_d_city, p_d_state, p_d_zip;
    IF p_c_last IS NOT NULL THEN
        SELECT array_agg(c_id ORDER BY c_first) INTO v_c_ids FROM customer
            WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last;
        p_c_id := v_c_ids[(cardinality(v_c_ids) + 1) / 2];
    END IF;
    UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
        c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC'
            THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, p_d_id, p_w_id, p_amount, c_data), 500) ELSE c_data END
        WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_id = p_c_id
        RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
            c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END
        INTO STRICT p_c_first, p_c_middle, p_c_last, p_c_street_1, p_c_street_2, p_c_city, p_c_state, p_c_zip, p_c_phone,
            p_c_since, p_c_credit, p_c_credit_lim, p_c_discount, p_c_balance, p_c_data;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (p_c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id, localtimestamp, p_amount, v_w_name || '    ' || v_d_name);
END $$
