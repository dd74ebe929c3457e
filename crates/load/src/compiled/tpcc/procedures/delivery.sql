CREATE OR REPLACE PROCEDURE tpcc_delivery(p_w_id int, p_carrier_id int, INOUT p_o_ids int[]) LANGUAGE plpgsql AS $$
DECLARE
    v_o_id int;
    v_c_id int;
    v_amount numeric;
BEGIN
    FOR district_number IN 1 .. 10 LOOP
        LOOP
            SELECT no_o_id INTO v_o_id FROM new_order WHERE no_w_id = p_w_id AND no_d_id = district_number
                ORDER BY no_o_id LIMIT 1;
            EXIT WHEN NOT found;
            DELETE FROM new_order WHERE no_w_id = p_w_id AND no_d_id = district_number AND no_o_id = v_o_id;
            EXIT WHEN found;
        END LOOP;
        p_o_ids[district_number] := v_o_id;
    END LOOP;
    FOR district_number IN 1 .. 10 LOOP
        v_o_id := p_o_ids[district_number];
        CONTINUE WHEN v_o_id IS NULL;
        UPDATE orders SET o_carrier_id = p_carrier_id
            WHERE o_w_id = p_w_id AND o_d_id = district_number AND o_id = v_o_id RETURNING o_c_id INTO STRICT v_c_id;
        WITH delivered AS (
            UPDATE order_line SET ol_delivery_d = localtimestamp
                WHERE ol_w_id = p_w_id AND ol_d_id = district_number AND ol_o_id = v_o_id RETURNING ol_amount
        ) SELECT sum(ol_amount) INTO v_amount FROM delivered;
        UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = p_w_id AND c_d_id = district_number AND c_id = v_c_id;
    END LOOP;
END $$
